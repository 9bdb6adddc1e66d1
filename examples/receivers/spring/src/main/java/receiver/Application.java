package receiver;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/**
 * A receiver of Switchboard's webhooks with Spring Boot (3).
 *
 * <pre>
 *   mvn -q compile
 *   WEBHOOK_SECRET=whsec_… PORT=8080 mvn -q spring-boot:run
 * </pre>
 */
@SpringBootApplication
public class Application {
    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }
}
