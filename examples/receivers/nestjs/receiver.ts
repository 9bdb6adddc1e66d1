// A receiver of Switchboard's webhooks with NestJS on Express.
//
//   npm install
//   WEBHOOK_SECRET=whsec_… PORT=8080 node --import tsx receiver.ts
//
// Nest parses JSON before a controller sees it. `express.raw`, mounted on this one path before Nest
// brings its parsers, leaves the bytes in `request.body`; every other route goes on as before.
import 'reflect-metadata';
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { link, mkdir, unlink, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import {
  BadRequestException,
  Controller,
  HttpCode,
  Module,
  Post,
  Req,
  UnauthorizedException,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import express from 'express';

const SECRET = process.env.WEBHOOK_SECRET ?? '';
const FOLDER = process.env.EVENTS_FOLDER ?? 'events';
const TOLERANCE_SECONDS = 300;

/** rawBody: the bytes as they came; now in Unix seconds. */
const isGenuine = (headers: IncomingMessage['headers'], rawBody: Buffer, now: number): boolean => {
  const timestamp = String(headers['x-service-timestamp'] ?? '');
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const given = /^sha256=([0-9a-f]{64})$/.exec(String(headers['x-service-signature'] ?? ''));
  if (!given) return false;
  const expected = createHmac('sha256', SECRET).update(`${timestamp}.`).update(rawBody).digest();
  return timingSafeEqual(expected, Buffer.from(given[1]!, 'hex'));
};

/** Stores an event unless it is stored already; says whether it is new. */
const store = async (deliveryId: string, rawBody: Buffer): Promise<boolean> => {
  const temporary = path.join(FOLDER, `${randomUUID()}.tmp`);
  await writeFile(temporary, rawBody, { flag: 'wx', flush: true });
  try {
    // Made whole or not at all, and never over a file that is there.
    await link(temporary, path.join(FOLDER, `${deliveryId}.json`));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
};

@Controller('hooks')
class WebhooksController {
  @Post()
  @HttpCode(204)
  async receive(@Req() request: IncomingMessage & { body?: unknown }): Promise<void> {
    const rawBody = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    if (!isGenuine(request.headers, rawBody, Date.now() / 1000)) throw new UnauthorizedException();
    // From the signed body, not from the header, which is not signed.
    const { id, event } = JSON.parse(rawBody.toString('utf8')) as { id: string; event: string };
    if (!/^[0-9a-f-]{36}$/.test(id)) throw new BadRequestException();
    // What cannot be stored is Nest's 500, which asks for the next try.
    const isNew = await store(id, rawBody);
    console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
  }
}

@Module({ controllers: [WebhooksController] })
class AppModule {}

// The prefix alone would be a secret that everybody knows.
if (!/^whsec_\S+$/.test(SECRET)) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook.');
  process.exit(1);
}
await mkdir(FOLDER, { recursive: true });

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
app.use('/hooks', express.raw({ type: () => true, limit: '5mb', inflate: false }));
await app.listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
console.log(`listening on ${await app.getUrl()}/hooks`);
