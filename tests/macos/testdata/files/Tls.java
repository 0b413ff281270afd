import java.net.URI;

public class Tls {
    public static void main(String[] args) throws Exception {
        URI.create("https://example.com").toURL().openStream().close();
    }
}
