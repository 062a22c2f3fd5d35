# frozen_string_literal: true

# rack_lint_test.rb runs this: serves a Rack::Lint application with one release of Rack.
begin
  gem "rack", ARGV.fetch(0)
rescue LoadError
  abort "no such rack"
end
require "rack"
require "rack/lint"
require "uri" # missing in the Lint of Rack 2.2
require "tempfile"
require_relative "../../unit/http/support/served_queue"

RACK3 = Rack::RELEASE.to_i >= 3
TYPE = RACK3 ? "content-type" : "Content-Type"
LENGTH = RACK3 ? "content-length" : "Content-Length"
FILE = Tempfile.new.tap { |file| file.write("file") && file.flush }

# A body with a path.
class PathBody
  def each = yield("file")
  def to_path = FILE.path
end

STREAM = lambda do |stream|
  stream << "str" << "eam"
  stream.close
end

PARTIAL = lambda do |stream|
  stream.write("par")
  stream.write("tial")
  stream.flush
  stream.close
end

UPGRADED = lambda do |stream|
  stream.write(stream.read)
  stream.close
end

# Rack 2 passes the connection in the environment.
def take_over(env)
  socket = env["rack.hijack"].call
  socket = env["rack.hijack_io"] unless RACK3
  socket.write("HTTP/1.1 200 taken\r\n\r\nfull")
  socket.close
end

BODIES = {
  "/array" => -> { [200, { TYPE => "text/plain" }, ["array"]] },
  "/sized" => -> { [200, { TYPE => "text/plain", LENGTH => "5" }, ["sized"]] },
  "/each" => -> { [200, { TYPE => "text/plain" }, %w[e a c h].each] },
  "/path" => -> { [200, { TYPE => "text/plain" }, PathBody.new] },
  "/empty" => -> { [204, {}, []] },
  "/unchanged" => -> { [304, {}, []] },
  "/stream" => -> { [200, { TYPE => "text/plain" }, RACK3 ? STREAM : ["stream"]] },
  "/partial" => -> { [200, { TYPE => "text/plain", "rack.hijack" => PARTIAL }, []] },
  "/upgrade" => -> { [101, { "upgrade" => "echo", "rack.hijack" => UPGRADED }, []] },
  "/hints" => -> { [200, { TYPE => "text/plain" }, ["hints"]] }
}.freeze

inner = lambda do |env|
  env["rack.errors"].write("") && env["rack.errors"].flush
  env["rack.input"].read(2)
  env["rack.input"].gets
  env["rack.input"].each { |line| line }
  env["rack.early_hints"].call("link" => "x") if env["PATH_INFO"] == "/hints"
  take_over(env) if env["PATH_INFO"] == "/full"
  BODIES.fetch(env["PATH_INFO"], BODIES["/array"]).call.then do |status, fields, body|
    [status, fields, env["REQUEST_METHOD"] == "HEAD" ? [] : body]
  end
end

failures = []
Pando::Events.subscribe { |event| failures << "#{event.name} #{event.payload}" }
count = 0
check = lambda do |status, text, answer|
  count += 1
  body = answer["transfer-encoding"] == "chunked" ? answer.chunks.join : answer.body
  failures << "#{text.inspect}: #{answer.bytes.inspect}" unless answer.status == status && body == text
end

[HTTPSupport::ServedWork, HTTPSupport::ServedQueue].each do |kind|
  served = kind.new(Rack::Lint.new(inner), body_memory: 100, early_hints: true).start
  %w[array sized each path stream].each do |name|
    text = name == "path" ? "file" : name
    check.call(200, text, served.get("/#{name}"))
    check.call(200, text, served.get("/#{name}", version: "1.0"))
    check.call(200, "", served.get("/#{name}", verb: "HEAD"))
  end
  check.call(204, "", served.get("/empty"))
  check.call(304, "", served.get("/unchanged"))
  check.call(200, "array", served.get("/a%20b/../c?q[]=1&x=%"))
  check.call(200, "array", served.get("http://example.org"))
  check.call(200, "array", served.get("*", verb: "OPTIONS"))
  check.call(200, "array", served.get("/", "X-Odd: \xFF\xFE\r\nCookie: a=b\r\nCookie: c=d\r\nX_Bad: y\r\n".b))
  check.call(200, "array", served.get("/", "Content-Type: text/plain\r\n", verb: "PROPFIND"))
  check.call(200, "array", served.exchange("GET / HTTP/1.0\r\n\r\n"))
  check.call(200, "array", served.exchange("GET / HTTP/1.1\r\nHost:\r\n\r\n"))
  check.call(200, "array", served.exchange("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"))
  ["", "hello\nworld", "x" * 1000].each do |body|
    check.call(200, "array", served.post(body))
    chunk = body.empty? ? "" : "#{body.bytesize.to_s(16)}\r\n#{body}\r\n"
    check.call(200, "array", served.post("#{chunk}0\r\n\r\n", "Transfer-Encoding: chunked\r\n"))
  end
  %w[partial full].each { |name| check.call(200, name, served.get("/#{name}")) }
  upgrade = "GET /upgrade HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\n\r\nthere and back"
  check.call(101, "there and back", served.exchange(upgrade, finish: true))
  hints, answer = served.get("/hints").bytes.split("\r\n\r\n", 2)
  check.call(103, "", HTTPSupport::Answer.new("#{hints}\r\n\r\n"))
  check.call(200, "hints", HTTPSupport::Answer.new(answer))
  served.stop
end

abort failures.join("\n") if failures.any?
puts "rack #{Rack::RELEASE}: #{count} requests, no complaint"
