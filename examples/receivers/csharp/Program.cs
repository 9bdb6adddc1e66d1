// A receiver of Switchboard's webhooks for ASP.NET Core (.NET 8 or later).
//
//   dotnet new web -o receiver && cp Program.cs receiver/ && cd receiver
//   WEBHOOK_SECRET=whsec_… dotnet run --urls http://127.0.0.1:8080
//
// It stores each event once, as a file named after the delivery id, and answers when it is stored.
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;

const int ToleranceSeconds = 300;

var secret = Encoding.UTF8.GetBytes(
    Environment.GetEnvironmentVariable("WEBHOOK_SECRET")
        ?? throw new InvalidOperationException("Set WEBHOOK_SECRET."));
var folder = Environment.GetEnvironmentVariable("EVENTS_FOLDER") ?? "events";
Directory.CreateDirectory(folder);

var app = WebApplication.Create(args);

app.MapPost("/{**path}", async (HttpRequest request) =>
{
    using var buffer = new MemoryStream();
    await request.Body.CopyToAsync(buffer);
    var rawBody = buffer.ToArray();
    var timestamp = request.Headers["X-Service-Timestamp"].ToString();
    var signature = request.Headers["X-Service-Signature"].ToString();
    if (!IsGenuine(timestamp, signature, rawBody, DateTimeOffset.UtcNow.ToUnixTimeSeconds()))
    {
        return Results.Unauthorized();
    }

    // From the signed body, not from the header, which is not signed.
    using var envelope = JsonDocument.Parse(rawBody);
    var id = envelope.RootElement.GetProperty("id").GetString() ?? "";
    if (!Regex.IsMatch(id, @"^[0-9a-f-]{36}\z"))
    {
        return Results.BadRequest();
    }

    var isNew = await Store(id, rawBody);
    var name = envelope.RootElement.GetProperty("event").GetString();
    Console.WriteLine($"{(isNew ? "stored" : "seen before")} {name} {id}");
    return Results.NoContent();
});

app.Run();

bool IsGenuine(string timestamp, string signature, byte[] rawBody, long now)
{
    if (!Regex.IsMatch(timestamp, @"^[0-9]{1,12}\z")) return false;
    if (Math.Abs(now - long.Parse(timestamp)) > ToleranceSeconds) return false;
    var signed = new byte[timestamp.Length + 1 + rawBody.Length];
    Encoding.ASCII.GetBytes(timestamp + ".").CopyTo(signed, 0);
    rawBody.CopyTo(signed, timestamp.Length + 1);
    var expected = "sha256=" + Convert.ToHexString(HMACSHA256.HashData(secret, signed)).ToLowerInvariant();
    return CryptographicOperations.FixedTimeEquals(
        Encoding.UTF8.GetBytes(expected), Encoding.UTF8.GetBytes(signature));
}

async Task<bool> Store(string deliveryId, byte[] rawBody)
{
    var temporary = Path.Combine(folder, Path.GetRandomFileName());
    var target = Path.Combine(folder, deliveryId + ".json");
    await File.WriteAllBytesAsync(temporary, rawBody);
    try
    {
        File.Move(temporary, target, overwrite: false);
        return true;
    }
    catch (IOException) when (File.Exists(target))
    {
        File.Delete(temporary);
        return false;
    }
}
