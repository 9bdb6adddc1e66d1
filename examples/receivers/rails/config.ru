# A receiver of Switchboard's webhooks with Rails (6.1 or later), in one file.
#
#   bundle install        (Debian: apt-get install ruby-railties ruby-actionpack puma)
#   WEBHOOK_SECRET=whsec_... PORT=8080 puma -C puma.rb
#
# In an app of yours, take the module, the controller and the route. The traps: `params` parses the
# JSON, so the signature is computed over `request.raw_post`; and a controller under
# ActionController::Base needs `skip_forgery_protection` for a post from elsewhere.
require "action_controller/railtie"
require "json"
require "openssl"
require "securerandom"

$stdout.sync = true
SECRET = ENV.fetch("WEBHOOK_SECRET", "")
FOLDER = File.expand_path(ENV.fetch("EVENTS_FOLDER", "events"))

# The prefix alone would be a secret that everybody knows.
abort "Set WEBHOOK_SECRET to the secret of the webhook." unless SECRET.match?(/\Awhsec_\S+\z/)
FileUtils.mkdir_p(FOLDER)

module Webhook
  TOLERANCE_SECONDS = 300
  MAX_BODY_BYTES = 5 * 1024 * 1024

  # timestamp and signature are the header values, raw_body the bytes as they came; now in Unix seconds.
  def self.genuine?(timestamp, signature, raw_body, now)
    return false unless timestamp.to_s.match?(/\A[0-9]{1,12}\z/)
    return false if (now - timestamp.to_i).abs > TOLERANCE_SECONDS

    expected = "sha256=" + OpenSSL::HMAC.hexdigest("SHA256", SECRET, "#{timestamp}.".b + raw_body.b)
    ActiveSupport::SecurityUtils.secure_compare(expected.b, signature.to_s.b)
  end

  # Stores an event unless it is stored already; says whether it is new.
  def self.store(delivery_id, raw_body)
    temporary = File.join(FOLDER, "#{SecureRandom.uuid}.tmp")
    File.open(temporary, File::WRONLY | File::CREAT | File::EXCL | File::BINARY, 0o600) do |file|
      file.write(raw_body)
      file.fsync
    end
    # Made whole or not at all, and never over a file that is there.
    File.link(temporary, File.join(FOLDER, "#{delivery_id}.json"))
    true
  rescue Errno::EEXIST
    false
  ensure
    FileUtils.rm_f(temporary)
  end
end

# Metal: Base and API read `params` for their log before the action runs, and so parse the body.
class WebhooksController < ActionController::Metal
  include ActionController::Head

  def receive
    return head(:payload_too_large) if request.content_length.to_i > Webhook::MAX_BODY_BYTES

    raw_body = request.raw_post
    timestamp = request.headers["X-Service-Timestamp"]
    signature = request.headers["X-Service-Signature"]
    return head(:unauthorized) unless Webhook.genuine?(timestamp, signature, raw_body, Time.now.to_i)

    # From the signed body, not from the header, which is not signed.
    id, event = JSON.parse(raw_body).values_at("id", "event")
    return head(:bad_request) unless id.to_s.match?(/\A[0-9a-f-]{36}\z/)

    # What cannot be stored is the 500 of Rails, which asks for the next try.
    is_new = Webhook.store(id, raw_body)
    puts "#{is_new ? "stored" : "seen before"} #{event} #{id}"
    head :no_content
  end
end

class Receiver < Rails::Application
  config.root = __dir__
  config.eager_load = false
  config.consider_all_requests_local = false
  config.logger = Logger.new($stderr, level: Logger::ERROR)
  # Nothing here is signed with it.
  config.secret_key_base = SecureRandom.hex(64)
  routes.append { post "/hooks", to: "webhooks#receive" }
end

Receiver.initialize!
puts "listening on http://127.0.0.1:#{ENV.fetch("PORT", "8080")}/hooks"
run Receiver
