<?php
// A receiver of Switchboard's webhooks, with nothing but PHP (8.0 or later).
//
//   WEBHOOK_SECRET=whsec_… PORT=8080 php receiver.php
//
// It stores each event once, as a file named after the delivery id, and answers when it is stored.
declare(strict_types=1);

const TOLERANCE_SECONDS = 300;

/** $timestamp and $signature are the header values, $rawBody the bytes as they came. */
function isGenuine(string $secret, string $timestamp, string $signature, string $rawBody, int $now): bool
{
    if (preg_match('/^[0-9]{1,12}\z/', $timestamp) !== 1) {
        return false;
    }
    if (abs($now - (int) $timestamp) > TOLERANCE_SECONDS) {
        return false;
    }
    $expected = 'sha256=' . hash_hmac('sha256', $timestamp . '.' . $rawBody, $secret);
    return hash_equals($expected, $signature);
}

/** Stores an event unless it is stored already; says whether it is new. */
function store(string $folder, string $deliveryId, string $rawBody): bool
{
    $target = "$folder/$deliveryId.json";
    $temporary = tempnam($folder, 'new');
    if ($temporary === false || file_put_contents($temporary, $rawBody) !== strlen($rawBody)) {
        throw new RuntimeException('The event could not be written.');
    }
    // A link is made whole or not at all, and never over a file that is there.
    $isNew = @link($temporary, $target);
    unlink($temporary);
    if (!$isNew && !is_file($target)) {
        throw new RuntimeException('The event could not be stored.');
    }
    return $isNew;
}

function receive(string $secret, string $folder): int
{
    if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
        return 405;
    }
    // The raw body: $_POST and json_decode come after verifying.
    $rawBody = (string) file_get_contents('php://input');
    $timestamp = $_SERVER['HTTP_X_SERVICE_TIMESTAMP'] ?? '';
    $signature = $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '';
    if (!isGenuine($secret, $timestamp, $signature, $rawBody, time())) {
        return 401;
    }
    $envelope = json_decode($rawBody, true, 512, JSON_THROW_ON_ERROR);
    if (preg_match('/^[0-9a-f-]{36}\z/', $envelope['id']) !== 1) {
        return 400;
    }
    $isNew = store($folder, $envelope['id'], $rawBody);
    $line = ($isNew ? 'stored ' : 'seen before ') . $envelope['event'] . ' ' . $envelope['id'];
    file_put_contents('php://stdout', "$line\n");
    return 204;
}

$secret = (string) getenv('WEBHOOK_SECRET');
// The prefix alone would be a secret that everybody knows.
$hasSecret = preg_match('/^whsec_\S+\z/', $secret) === 1;

if (PHP_SAPI === 'cli') {
    // Started by hand: PHP's own server runs this very file for each request.
    if (!$hasSecret) {
        fwrite(STDERR, "Set WEBHOOK_SECRET to the secret of the webhook.\n");
        exit(1);
    }
    $arguments = ['-S', '127.0.0.1:' . (getenv('PORT') ?: '8080'), __FILE__];
    if (function_exists('pcntl_exec')) {
        pcntl_exec(PHP_BINARY, $arguments);
    }
    passthru(implode(' ', array_map('escapeshellarg', [PHP_BINARY, ...$arguments])), $status);
    exit($status);
}
if (!$hasSecret) {
    // Said aloud, because PHP answers 200 to an error that it displays.
    http_response_code(500);
    throw new RuntimeException('Set WEBHOOK_SECRET to the secret of the webhook.');
}

$folder = getenv('EVENTS_FOLDER') ?: 'events';
if (!is_dir($folder)) {
    mkdir($folder, 0700, true);
}

try {
    http_response_code(receive($secret, $folder));
} catch (Throwable $error) {
    error_log((string) $error);
    // Not stored: a 5xx asks for the next try.
    http_response_code(500);
}
