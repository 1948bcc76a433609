import java.io.File;
import java.io.FileOutputStream;
import java.security.KeyStore;
import java.util.Collections;

/** Copies the private keys of a store, by its password, into a PKCS12 store with that password, in which they have another. */
public class TwoPasswords {
    public static void main(String[] arguments) throws Exception {
        char[] password = arguments[1].toCharArray();
        KeyStore from = KeyStore.getInstance(new File(arguments[0]), password);
        KeyStore to = KeyStore.getInstance("PKCS12");
        to.load(null, null);
        for (String alias : Collections.list(from.aliases())) {
            to.setKeyEntry(
                    alias, from.getKey(alias, password), arguments[2].toCharArray(), from.getCertificateChain(alias));
        }
        try (FileOutputStream file = new FileOutputStream(arguments[3])) {
            to.store(file, password);
        }
    }
}
