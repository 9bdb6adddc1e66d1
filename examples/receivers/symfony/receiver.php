<?php
// A receiver of Switchboard's webhooks with Symfony (5.4 or later), in an app of one file. In an app
// of yours, ReceiveWebhook.php is all that is needed.
//
//   composer install        (Debian: apt-get install php-cli php-symfony-framework-bundle)
//   WEBHOOK_SECRET=whsec_… PORT=8080 php receiver.php
declare(strict_types=1);

use App\Controller\ReceiveWebhook;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

// The prefix alone would be a secret that everybody knows.
if (preg_match('/^whsec_\S+\z/', (string) getenv('WEBHOOK_SECRET')) !== 1) {
    file_put_contents('php://stderr', "Set WEBHOOK_SECRET to the secret of the webhook.\n");
    exit(1);
}

if (PHP_SAPI === 'cli') {
    // Started by hand: PHP's own server runs this very file for each request.
    $folder = getenv('EVENTS_FOLDER') ?: 'events';
    is_dir($folder) || mkdir($folder, 0700, true);
    $arguments = ['-S', '127.0.0.1:' . (getenv('PORT') ?: '8080'), __FILE__];
    if (function_exists('pcntl_exec')) {
        pcntl_exec(PHP_BINARY, $arguments);
    }
    passthru(implode(' ', array_map('escapeshellarg', [PHP_BINARY, ...$arguments])), $status);
    exit($status);
}

if (is_file(__DIR__ . '/vendor/autoload.php')) {
    require __DIR__ . '/vendor/autoload.php';
} else {
    // Where Debian's packages put it.
    require_once 'Symfony/Bundle/FrameworkBundle/autoload.php';
}
require __DIR__ . '/ReceiveWebhook.php';

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle()];
    }

    public function getProjectDir(): string
    {
        return __DIR__;
    }

    private function configureContainer(ContainerConfigurator $container): void
    {
        // Nothing here is signed with `secret`.
        $container->extension('framework', ['secret' => bin2hex(random_bytes(16))]);
        $container->services()->set(ReceiveWebhook::class)->public()->tag('controller.service_arguments');
    }

    private function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('hooks', '/hooks')->controller(ReceiveWebhook::class)->methods(['POST']);
    }
}

// What cannot be stored is Symfony's 500, which asks for the next try.
$kernel = new Kernel('prod', false);
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
