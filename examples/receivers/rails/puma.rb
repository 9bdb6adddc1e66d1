bind "tcp://127.0.0.1:#{ENV.fetch("PORT", "8080")}"
environment "production"
# The one file that says where the app is; puma's own output keeps to errors.
rackup File.expand_path("config.ru", __dir__)
quiet
