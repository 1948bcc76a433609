#!/bin/sh
# Makes these stores anew by the JDK's keytool: sh make.sh, in this folder. The tests' own passwords.
set -eu
rm -f -- *.jks *.p12 *.jceks *.pem stores.txt
store="-storepass changeit -noprompt"
trap 'rm -f authority.jks leaf.csr server.pem another.crt' EXIT
keytool -genkeypair -keystore authority.jks -storetype JKS $store -keypass changeit -alias authority -keyalg EC \
    -groupname secp256r1 -dname CN=authority -validity 36500 -ext bc:critical -ext ku:critical=keyCertSign
keytool -exportcert -rfc -keystore authority.jks $store -alias authority -file authority.pem

# A key with a password of its own, signed by the authority.
keytool -genkeypair -keystore server.jks -storetype JKS $store -keypass open-sesame -alias server -keyalg EC \
    -groupname secp256r1 -dname CN=localhost -validity 36500
keytool -certreq -keystore server.jks $store -keypass open-sesame -alias server -file leaf.csr
keytool -gencert -keystore authority.jks $store -alias authority -infile leaf.csr -rfc -outfile server.pem \
    -validity 36500 -ext san=dns:localhost,ip:127.0.0.1
cat authority.pem >> server.pem
keytool -importcert -keystore server.jks $store -keypass open-sesame -alias server -file server.pem

p12="-deststoretype PKCS12 -deststorepass changeit -srckeypass open-sesame -destkeypass changeit -srcalias server"
keytool -importkeystore -srckeystore server.jks -srcstorepass changeit -noprompt $p12 -destkeystore server.p12
# As Java 8 wrote them: RC2 with 40 bits, triple DES, SHA-1.
keytool -J-Dkeystore.pkcs12.legacy -importkeystore -srckeystore server.jks -srcstorepass changeit -noprompt $p12 \
    -destkeystore server-of-java-8.p12
keytool -importkeystore -srckeystore server.jks -srcstorepass changeit -noprompt -deststoretype JCEKS \
    -deststorepass changeit -srckeypass open-sesame -destkeypass changeit -srcalias server -destkeystore server.jceks

keytool -importkeystore -srckeystore server.jks -srcstorepass changeit -noprompt -srckeypass open-sesame \
    -deststoretype JKS -deststorepass changeit -destkeypass open-sesame -srcalias server -destkeystore two-keys.jks
keytool -genkeypair -keystore two-keys.jks -storetype JKS $store -keypass changeit -alias another -keyalg EC \
    -groupname secp256r1 -dname CN=another -validity 36500
cp server.p12 two-keys.p12
keytool -genkeypair -keystore two-keys.p12 $store -alias another -keyalg EC -groupname secp256r1 -dname CN=another \
    -validity 36500
# With a certificate that is not of the key's chain.
keytool -exportcert -keystore two-keys.p12 $store -alias another -file another.crt
cp server.p12 crowded.p12
keytool -importcert -keystore crowded.p12 $store -alias another -file another.crt
# With the authority of its key, which it trusts by itself.
cp server.p12 own-authority.p12
keytool -importcert -keystore own-authority.p12 $store -alias authority -file authority.pem

# Two passwords, of the store and of its key: keytool writes none of these, Java's KeyStore does.
java TwoPasswords.java server.p12 changeit open-sesame two-passwords.p12
java -Dkeystore.pkcs12.legacy TwoPasswords.java server.p12 changeit open-sesame two-passwords-of-java-8.p12

keytool -importcert -keystore trust.jks -storetype JKS $store -alias authority -file authority.pem
keytool -importcert -keystore trust.p12 -storetype PKCS12 $store -alias authority -file authority.pem
keytool -J-Dkeystore.pkcs12.legacy -importcert -keystore trust-of-java-8.p12 -storetype PKCS12 $store \
    -alias authority -file authority.pem
# Neither encrypted nor signed: it needs no password.
keytool -J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE -J-Dkeystore.pkcs12.macAlgorithm=NONE -importcert \
    -keystore trust-without-password.p12 -storetype PKCS12 $store -alias authority -file authority.pem
# A store of nothing.
keytool -importcert -keystore empty.jks -storetype JKS $store -alias authority -file authority.pem
keytool -delete -keystore empty.jks $store -alias authority
# A password beyond ASCII, which Java takes for JKS alone.
LC_ALL=C.UTF-8 keytool -importcert -keystore trust-beyond-ascii.jks -storetype JKS -storepass 'pässwörd-☃' -noprompt \
    -alias authority -file authority.pem

# What keytool says is in them: the fingerprints that the tests look for.
for one in server.jks server.p12 server-of-java-8.p12 trust.jks trust.p12 two-keys.jks crowded.p12 \
    two-passwords.p12; do
    echo "== $one"
    keytool -list -v -keystore "$one" -storepass changeit 2>/dev/null | grep -E "Entry type|SHA256: "
done > stores.txt
