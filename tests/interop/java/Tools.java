import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after another in one JVM, as starting one for each takes a second.
 *
 * A line {@code {"do": "run", "tool": CLASS, "arguments": [...], "input": TEXT}} is answered with the tool's status and
 * with what it printed. A tool that would end the JVM is left where it is, in a thread that nobody waits for any more.
 */
public class Tools {
    private static final int LIMIT_S = 40;
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Where tools write: they keep the stream that they find first, so that is always this one. */
    private static final class Output extends OutputStream {
        private volatile ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public void write(int value) {
            bytes.write(value);
        }

        @Override
        public void write(byte[] values, int offset, int length) {
            bytes.write(values, offset, length);
        }

        String taken() {
            String text = bytes.toString(StandardCharsets.UTF_8);
            bytes = new ByteArrayOutputStream();
            return text;
        }
    }

    private static final class Input extends InputStream {
        private volatile InputStream bytes = InputStream.nullInputStream();

        @Override
        public int read() throws IOException {
            return bytes.read();
        }

        @Override
        public int read(byte[] into, int offset, int length) throws IOException {
            return bytes.read(into, offset, length);
        }
    }

    private final Output output = new Output();
    private final Output errors = new Output();
    private final Input input = new Input();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Tools tools = new Tools();
        System.setIn(tools.input);
        System.setOut(new PrintStream(tools.output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(tools.errors, true, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            answer.set("result", tools.run(JSON.readTree(line)));
            answers.println(answer);
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private JsonNode run(JsonNode asked) throws Exception {
        String name = asked.get("tool").asText();
        String[] words = JSON.convertValue(asked.get("arguments"), String[].class);
        input.bytes = new ByteArrayInputStream(asked.get("input").asText().getBytes(StandardCharsets.UTF_8));
        CompletableFuture<Integer> status = new CompletableFuture<>();
        List<Runnable> hooks = new CopyOnWriteArrayList<>();
        Exit.Procedure end = (code, message) -> {
            status.complete(code);
            rest();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((hook, action) -> hooks.add(action));
        Thread tool = new Thread(() -> call(name, words, status), name);
        tool.setDaemon(true);
        tool.start();
        ObjectNode result = JSON.createObjectNode();
        try {
            result.put("status", status.get(LIMIT_S, TimeUnit.SECONDS));
        } catch (TimeoutException late) {
            result.put("status", -1);
        }
        hooks.forEach(Runnable::run);
        System.out.flush();
        System.err.flush();
        return result.put("out", output.taken()).put("err", errors.taken());
    }

    private static void call(String name, String[] words, CompletableFuture<Integer> status) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) words);
            status.complete(0);
        } catch (InvocationTargetException thrown) {
            thrown.getCause().printStackTrace();
            status.complete(1);
        } catch (ReflectiveOperationException missing) {
            missing.printStackTrace();
            status.complete(127);
        }
    }

    private static void rest() {
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException again) {
                // the tool ended the JVM, as it thinks: it never goes on
            }
        }
    }
}
