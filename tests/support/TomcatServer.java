package receiver;

import java.io.File;
import java.nio.file.Files;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.springframework.web.context.support.AnnotationConfigWebApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerAdapter;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** What Spring Boot does for the controller of examples/receivers/spring, with Debian's Spring and Tomcat. */
public final class TomcatServer {
    public static void main(String[] arguments) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        AnnotationConfigWebApplicationContext spring = new AnnotationConfigWebApplicationContext();
        spring.register(
                WebhookController.class, RequestMappingHandlerMapping.class, RequestMappingHandlerAdapter.class);

        Tomcat tomcat = new Tomcat();
        File folder = Files.createTempDirectory("tomcat").toFile();
        tomcat.setBaseDir(folder.getPath());
        Connector connector = new Connector();
        connector.setProperty("address", "127.0.0.1");
        connector.setPort(Integer.parseInt(System.getenv("PORT")));
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", folder.getPath());
        spring.setServletContext(context.getServletContext());
        // As in Boot, a controller that cannot be made ends the process before anything listens.
        spring.refresh();
        Tomcat.addServlet(context, "dispatcher", new DispatcherServlet(spring)).setLoadOnStartup(1);
        context.addServletMappingDecoded("/", "dispatcher");
        tomcat.start();
        tomcat.getServer().await();
    }
}
