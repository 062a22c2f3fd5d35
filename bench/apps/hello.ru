# frozen_string_literal: true

# The least that an application can do, and the same for every server. bench/slow asks it for more:
#
#   GET /        13 bytes
#   GET /large   as many bytes as BENCH_LARGE says
#   POST         reads the body

HELLO = ["Hello, world!"].freeze
LARGE = ["x" * Integer(ENV.fetch("BENCH_LARGE", "196608"))].freeze

run(lambda do |env|
  env["rack.input"]&.read if env["REQUEST_METHOD"] == "POST"
  body = env["PATH_INFO"] == "/large" ? LARGE : HELLO
  [200, { "content-type" => "text/plain", "content-length" => body.first.bytesize.to_s }, body]
end)
