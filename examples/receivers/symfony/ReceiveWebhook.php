<?php

declare(strict_types=1);

namespace App\Controller;

use RuntimeException;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

/**
 * The controller for an app of yours, with the attribute
 * #[Route('/hooks', methods: ['POST'])] on the method.
 *
 * The signature is computed over $request->getContent(). #[MapRequestPayload], $request->toArray() and
 * form types parse the body before anything is verified; a firewall has to let the path through.
 */
final class ReceiveWebhook
{
    private const TOLERANCE_SECONDS = 300;
    private const MAX_BODY_BYTES = 5 * 1024 * 1024;

    public function __invoke(Request $request): Response
    {
        if ((int) $request->headers->get('Content-Length', '0') > self::MAX_BODY_BYTES) {
            return new Response('', 413);
        }
        $rawBody = $request->getContent();
        $timestamp = $request->headers->get('X-Service-Timestamp') ?? '';
        $signature = $request->headers->get('X-Service-Signature') ?? '';
        // In an app: an argument of the constructor with #[Autowire(env: 'WEBHOOK_SECRET')].
        $secret = (string) getenv('WEBHOOK_SECRET');
        if (!self::isGenuine($secret, $timestamp, $signature, $rawBody, time())) {
            return new Response('', 401);
        }
        // From the signed body, not from the header, which is not signed.
        $envelope = json_decode($rawBody, true, 512, JSON_THROW_ON_ERROR);
        if (preg_match('/^[0-9a-f-]{36}\z/', $envelope['id']) !== 1) {
            return new Response('', 400);
        }
        $isNew = self::store(getenv('EVENTS_FOLDER') ?: 'events', $envelope['id'], $rawBody);
        $line = ($isNew ? 'stored ' : 'seen before ') . $envelope['event'] . ' ' . $envelope['id'];
        file_put_contents('php://stdout', "$line\n");
        return new Response('', 204);
    }

    /** $timestamp and $signature are the header values, $rawBody the bytes as they came. */
    private static function isGenuine(
        string $secret,
        string $timestamp,
        string $signature,
        string $rawBody,
        int $now
    ): bool {
        if (preg_match('/^[0-9]{1,12}\z/', $timestamp) !== 1) {
            return false;
        }
        if (abs($now - (int) $timestamp) > self::TOLERANCE_SECONDS) {
            return false;
        }
        $expected = 'sha256=' . hash_hmac('sha256', $timestamp . '.' . $rawBody, $secret);
        return hash_equals($expected, $signature);
    }

    /** Stores an event unless it is stored already; says whether it is new. */
    private static function store(string $folder, string $deliveryId, string $rawBody): bool
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
}
