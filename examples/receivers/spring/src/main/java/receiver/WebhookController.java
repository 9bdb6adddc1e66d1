package receiver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;

/**
 * The controller takes the body as a stream of bytes. A parameter {@code @RequestBody} of another type
 * would be parsed before anything is verified. With Spring Security, the path has to be let through and
 * exempt from its CSRF check, which a post from elsewhere cannot pass.
 */
@RestController
public class WebhookController {
    private static final int TOLERANCE_SECONDS = 300;
    private static final int MAX_BODY_BYTES = 5 * 1024 * 1024;

    private final ObjectMapper json = new ObjectMapper();
    private final byte[] secret;
    private final Path folder;

    public WebhookController() throws IOException {
        String given = environment("WEBHOOK_SECRET", "");
        // The prefix alone would be a secret that everybody knows. Without a controller nothing starts.
        if (!given.matches("whsec_\\S+")) {
            throw new IllegalStateException("Set WEBHOOK_SECRET to the secret of the webhook.");
        }
        secret = given.getBytes(StandardCharsets.UTF_8);
        folder = Files.createDirectories(Paths.get(environment("EVENTS_FOLDER", "events")));
    }

    @PostMapping("/hooks")
    public ResponseEntity<Void> receive(
            @RequestHeader(name = "X-Service-Timestamp", required = false) String timestamp,
            @RequestHeader(name = "X-Service-Signature", required = false) String signature,
            InputStream body)
            throws IOException, GeneralSecurityException {
        byte[] rawBody = read(body);
        if (rawBody == null) return ResponseEntity.status(413).build();
        long now = System.currentTimeMillis() / 1000;
        if (!isGenuine(secret, timestamp, signature, rawBody, now)) return ResponseEntity.status(401).build();
        // From the signed body, not from the header, which is not signed.
        JsonNode envelope = json.readTree(rawBody);
        String id = envelope.path("id").asText();
        if (!id.matches("[0-9a-f-]{36}")) return ResponseEntity.badRequest().build();
        // What cannot be stored is Spring's 500, which asks for the next try.
        boolean isNew = store(id, rawBody);
        System.out.println((isNew ? "stored " : "seen before ") + envelope.path("event").asText() + " " + id);
        return ResponseEntity.noContent().build();
    }

    /** timestamp and signature are the header values, rawBody the bytes as they came; now is in Unix seconds. */
    static boolean isGenuine(byte[] secret, String timestamp, String signature, byte[] rawBody, long now)
            throws GeneralSecurityException {
        if (timestamp == null || signature == null || !timestamp.matches("[0-9]{1,12}")) return false;
        if (Math.abs(now - Long.parseLong(timestamp)) > TOLERANCE_SECONDS) return false;
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret, "HmacSHA256"));
        mac.update((timestamp + ".").getBytes(StandardCharsets.US_ASCII));
        String expected = "sha256=" + String.format("%064x", new BigInteger(1, mac.doFinal(rawBody)));
        // In constant time: how long a comparison takes must not tell how much of it was right.
        return MessageDigest.isEqual(
                expected.getBytes(StandardCharsets.UTF_8), signature.getBytes(StandardCharsets.UTF_8));
    }

    /** The bytes as they came, or null where they are too many. */
    private static byte[] read(InputStream body) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] chunk = new byte[64 * 1024];
        for (int read; (read = body.read(chunk)) > 0; ) {
            if (bytes.size() + read > MAX_BODY_BYTES) return null;
            bytes.write(chunk, 0, read);
        }
        return bytes.toByteArray();
    }

    /** Stores an event unless it is stored already; says whether it is new. */
    private boolean store(String deliveryId, byte[] rawBody) throws IOException {
        Path temporary = Files.createTempFile(folder, "new", ".tmp");
        try {
            try (FileChannel file = FileChannel.open(temporary, StandardOpenOption.WRITE)) {
                ByteBuffer bytes = ByteBuffer.wrap(rawBody);
                while (bytes.hasRemaining()) file.write(bytes);
                file.force(true);
            }
            // Made whole or not at all, and never over a file that is there.
            Files.createLink(folder.resolve(deliveryId + ".json"), temporary);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } finally {
            Files.delete(temporary);
        }
    }

    private static String environment(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }
}
