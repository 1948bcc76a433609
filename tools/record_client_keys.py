"""Record the keys of Apache Kafka's clients: what the ConfigDef objects of its jars say.

    python -m tools.record_client_keys

Runs a Java program with the jars of the folder of peers (`ODRADEK_PEERS`, by default `../shared/peers`), and writes
`tests/client/golden/client_keys.json`: of each kind of client the keys, by name, each with its type, its default (null
for none), what is valid, and whether it must be given. Needs Java 17 or later.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.peers_folder import peers_folder

GOLDEN = Path(__file__).parents[1] / "tests" / "client" / "golden" / "client_keys.json"
KINDS = {
    "producer": "org.apache.kafka.clients.producer.ProducerConfig",
    "consumer": "org.apache.kafka.clients.consumer.ConsumerConfig",
    "admin": "org.apache.kafka.clients.admin.AdminClientConfig",
}
PROGRAM = """\
import java.util.Objects;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.AppInfoParser;

public class ClientKeys {
    public static void main(String[] classes) throws Exception {
        System.out.println(AppInfoParser.getVersion());
        for (String name : classes) {
            ConfigDef keys = (ConfigDef) Class.forName(name).getMethod("configDef").invoke(null);
            for (ConfigDef.ConfigKey key : keys.configKeys().values()) {
                boolean isRequired = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE;
                String text = isRequired ? null : ConfigDef.convertToString(key.defaultValue, key.type);
                System.out.println(String.join("\\t", name, key.name, key.type.name(), text == null ? "\\0" : text,
                    Objects.toString(key.validator, ""), String.valueOf(isRequired)));
            }
        }
    }
}
"""


def ask_kafka() -> tuple[str, dict[str, list[list[Any]]]]:
    """Return Kafka's version, and each client's rows."""
    with tempfile.TemporaryDirectory(prefix="odradek-") as folder:
        program = Path(folder) / "ClientKeys.java"
        program.write_text(PROGRAM, encoding="utf-8")
        command = [sys.executable, str(peers_folder() / "peers.py"), "java", str(program), *KINDS.values()]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    version, *lines = done.stdout.splitlines()
    rows: dict[str, list[list[Any]]] = {kind: [] for kind in KINDS}
    kinds = {name: kind for kind, name in KINDS.items()}
    for line in lines:
        name, key, type_, default, valid, is_required = line.split("\t")
        rows[kinds[name]].append([key, type_, None if default == "\0" else default, valid, is_required == "true"])
    return version, {kind: sorted(found) for kind, found in rows.items()}


def main() -> None:
    """Ask, and write the file: a key a line."""
    version, rows = ask_kafka()
    origin = (
        f"Apache Kafka {version}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, by tools/record_client_keys.py: "
        "name, type, default, valid values, whether it must be given"
    )
    parts = [f'"origin": {json.dumps(origin)}']
    for kind, found in rows.items():
        parts.append(f'"{kind}": [\n' + ",\n".join(json.dumps(row) for row in found) + "\n]")
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{sum(map(len, rows.values()))} keys in {GOLDEN}")


if __name__ == "__main__":
    main()
