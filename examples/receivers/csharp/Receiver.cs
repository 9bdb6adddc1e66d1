// A receiver of Switchboard's webhooks, with nothing but .NET (8 or later; Mono 6.8 and .NET
// Framework 4.8 run it as well).
//
//   dotnet new console -o receiver && rm receiver/Program.cs && cp Receiver.cs receiver/ && cd receiver
//   WEBHOOK_SECRET=whsec_… PORT=8080 dotnet run
//
// It stores each event once, as a file named after the delivery id, and answers when it is stored.
// In ASP.NET Core only Main and Answer differ: read request.Body to its end, call Signature.IsGenuine.
using System;
using System.IO;
using System.Net;
using System.Runtime.Serialization;
using System.Runtime.Serialization.Json;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;

static class Signature
{
    const int ToleranceSeconds = 300;

    /// timestamp and signature are the header values, rawBody the bytes as they came; now is in Unix seconds.
    public static bool IsGenuine(byte[] secret, string timestamp, string signature, byte[] rawBody, long now)
    {
        if (!Regex.IsMatch(timestamp ?? "", @"^[0-9]{1,12}\z")) return false;
        if (Math.Abs(now - long.Parse(timestamp)) > ToleranceSeconds) return false;
        var signed = new byte[timestamp.Length + 1 + rawBody.Length];
        Encoding.ASCII.GetBytes(timestamp + ".").CopyTo(signed, 0);
        rawBody.CopyTo(signed, timestamp.Length + 1);
        using (var hmac = new HMACSHA256(secret))
        {
            var hex = BitConverter.ToString(hmac.ComputeHash(signed)).Replace("-", "").ToLowerInvariant();
            return AreEqual(Encoding.UTF8.GetBytes("sha256=" + hex), Encoding.UTF8.GetBytes(signature ?? ""));
        }
    }

    /// In constant time: how long a comparison takes must not tell how much of it was right.
    static bool AreEqual(byte[] left, byte[] right)
    {
        if (left.Length != right.Length) return false;
        var difference = 0;
        for (var index = 0; index < left.Length; index++) difference |= left[index] ^ right[index];
        return difference == 0;
    }
}

[DataContract]
class Envelope
{
    [DataMember] public string id = null;
    [DataMember(Name = "event")] public string name = null;

    public static Envelope Read(byte[] rawBody)
    {
        return (Envelope)new DataContractJsonSerializer(typeof(Envelope)).ReadObject(new MemoryStream(rawBody));
    }
}

static class Receiver
{
    const int MaxBodyBytes = 5 * 1024 * 1024;
    static readonly object Storing = new object();
    static byte[] secret;
    static string folder;

    static int Main()
    {
        var given = Environment.GetEnvironmentVariable("WEBHOOK_SECRET") ?? "";
        // The prefix alone would be a secret that everybody knows.
        if (!Regex.IsMatch(given, @"^whsec_\S+\z"))
        {
            Console.Error.WriteLine("Set WEBHOOK_SECRET to the secret of the webhook.");
            return 1;
        }
        secret = Encoding.UTF8.GetBytes(given);
        folder = Environment.GetEnvironmentVariable("EVENTS_FOLDER") ?? "events";
        Directory.CreateDirectory(folder);

        var address = "http://127.0.0.1:" + (Environment.GetEnvironmentVariable("PORT") ?? "8080") + "/";
        using (var listener = new HttpListener())
        {
            listener.Prefixes.Add(address);
            listener.Start();
            Console.WriteLine("listening on " + address);
            for (;;)
            {
                var context = listener.GetContext();
                ThreadPool.QueueUserWorkItem(_ => Answer(context));
            }
        }
    }

    static void Answer(HttpListenerContext context)
    {
        try
        {
            context.Response.StatusCode = Receive(context.Request);
        }
        catch (Exception error)
        {
            // Not stored: a 5xx asks for the next try.
            Console.Error.WriteLine(error);
            context.Response.StatusCode = 500;
        }
        context.Response.Close();
    }

    static int Receive(HttpListenerRequest request)
    {
        if (request.HttpMethod != "POST") return 405;
        var rawBody = ReadBody(request.InputStream);
        if (rawBody == null) return 413;
        var timestamp = request.Headers["X-Service-Timestamp"];
        var signature = request.Headers["X-Service-Signature"];
        var now = DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        if (!Signature.IsGenuine(secret, timestamp, signature, rawBody, now)) return 401;
        // From the signed body, not from the header, which is not signed.
        var envelope = Envelope.Read(rawBody);
        if (!Regex.IsMatch(envelope.id ?? "", @"^[0-9a-f-]{36}\z")) return 400;
        var isNew = Store(envelope.id, rawBody);
        Console.WriteLine((isNew ? "stored " : "seen before ") + envelope.name + " " + envelope.id);
        return 204;
    }

    static byte[] ReadBody(Stream body)
    {
        var buffer = new MemoryStream();
        var chunk = new byte[64 * 1024];
        for (int read; (read = body.Read(chunk, 0, chunk.Length)) > 0;)
        {
            if (buffer.Length + read > MaxBodyBytes) return null;
            buffer.Write(chunk, 0, read);
        }
        return buffer.ToArray();
    }

    /// Stores an event unless it is stored already; says whether it is new. One process a folder.
    static bool Store(string deliveryId, byte[] rawBody)
    {
        var target = Path.Combine(folder, deliveryId + ".json");
        var temporary = Path.Combine(folder, Guid.NewGuid() + ".tmp");
        lock (Storing)
        {
            if (File.Exists(target)) return false;
            // Under another name first: a crash half way must not leave half an event.
            using (var file = new FileStream(temporary, FileMode.CreateNew))
            {
                file.Write(rawBody, 0, rawBody.Length);
                file.Flush(true);
            }
            File.Move(temporary, target);
            return true;
        }
    }
}
