<?php
// A receiver of Switchboard's webhooks with Laravel's router and requests (8 or later), to try the
// controller without a whole app. In an app, ReceiveWebhook.php is all that is needed.
//
//   composer install
//   (Debian: apt-get install php-cli php-illuminate-events php-illuminate-http php-illuminate-routing)
//   WEBHOOK_SECRET=whsec_… PORT=8080 php receiver.php
declare(strict_types=1);

use App\Http\Controllers\ReceiveWebhook;
use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Illuminate\Routing\Router;
use Symfony\Component\HttpKernel\Exception\HttpExceptionInterface;

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
    // Where Debian's packages put them.
    require_once 'Illuminate/Events/autoload.php';
    require_once 'Illuminate/Http/autoload.php';
    require_once 'Illuminate/Routing/autoload.php';
}
require __DIR__ . '/ReceiveWebhook.php';

$container = new Container();
$router = new Router(new Dispatcher($container), $container);
$router->post('/hooks', ReceiveWebhook::class);

// What the controller asks for by its type.
$request = Request::capture();
$container->instance(Request::class, $request);

try {
    $response = $router->dispatch($request);
} catch (HttpExceptionInterface $error) {
    $response = new Response('', $error->getStatusCode());
} catch (Throwable $error) {
    error_log((string) $error);
    // Not stored: a 5xx asks for the next try.
    $response = new Response('', 500);
}
$response->send();
