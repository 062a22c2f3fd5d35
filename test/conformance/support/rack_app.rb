# frozen_string_literal: true

require "digest"
require "json"
require "rack"
require "rack/lint"

# The application of rack_app_test.rb. The path names one promise of the Rack specification, and the response shows
# whether it is kept.
class RackApp
  # Facts about a request that are known only after its response go to the file with this name, if it is set.
  def self.note(name, text) = name.to_s.empty? ? nil : File.write(name, "#{text}\n", mode: "a")

  # A body with only each and close.
  class Pieces
    def initialize(name = nil, &pieces)
      @name = name
      @pieces = pieces
    end

    def each(&block) = @pieces.call(block)
    def close = RackApp.note(@name, "closed")
  end

  # A body that is also a file.
  class FileBody < Pieces
    def to_path = File.expand_path("config.ru")
  end

  # WebSocket (RFC 6455), as far as an echo of short texts needs it.
  module Echo
    GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    def self.accept(key) = [Digest::SHA1.digest(key + GUID)].pack("m0")

    # @param socket [#read, #write] @return when the client closes
    def self.run(socket)
      while (head = socket.read(2)) && head.bytesize == 2
        length = head.getbyte(1) & 0x7F
        mask = socket.read(4).bytes
        text = socket.read(length).bytes.each_with_index.map { |byte, index| byte ^ mask[index % 4] }
        socket.write([head.getbyte(0), length, *text].pack("C*"))
        break if head.getbyte(0) & 0x0F == 8
      end
      socket.close
    end
  end

  def call(env)
    return [200, { "allow" => "GET, OPTIONS" }, ["OPTIONS #{env["PATH_INFO"]}"]] if env["REQUEST_METHOD"] == "OPTIONS"

    route = env["PATH_INFO"].delete_prefix("/").tr("/", "_")
    respond_to?("get_#{route}") ? public_send("get_#{route}", env) : [404, {}, []]
  end

  def get_env(env)
    json(env.select { |_name, value| [String, Integer, true, false, nil].any? { |kind| kind === value } }) # rubocop:disable Style/CaseEquality
  end

  def get_echo(env) = [200, {}, Pieces.new { |block| env["rack.input"].each(&block) }]

  # Tries each way to read, and reading at the end of the input.
  def get_input(env)
    input = env["rack.input"]
    buffer = +"something"
    first = input.gets
    second = input.read(4)
    input.read(3, buffer)
    lines = Enumerator.new { |all| input.each { |line| all << line } }
    json([first, second, buffer, lines.to_a, input.read, input.read(1), input.gets, input.read(0)])
  end

  def get_size(env)
    sum = Digest::SHA1.new
    size = 0
    while (piece = env["rack.input"].read(10_000))
      sum << piece
      size += piece.bytesize
    end
    json([size, sum.hexdigest])
  end

  def get_status(env) = [env["QUERY_STRING"].to_i, {}, []]
  def get_fields(env) = [200, JSON.parse(env["rack.input"].read), []]
  def get_frozen(_env) = [200, { "x-frozen" => "yes" }.freeze, %w[a b].freeze].freeze

  def get_cookies(env)
    response = Rack::Response.new
    JSON.parse(env["rack.input"].read).each { |name, value| response.set_cookie(name, value) }
    response.finish
  end

  # The application is its own body.
  def get_itself(_env) = [200, {}, self]
  def each = yield("it is me")

  def get_enumerator(_env) = [200, {}, Enumerator.new { |pieces| 10.times { |number| pieces << "#{number}\n" } }]
  def get_path(_env) = [200, {}, FileBody.new { |_| raise "the server shall send the file" }]
  def get_sized(_env) = [200, { "content-length" => "5" }, Pieces.new { |block| %w[fi ve!].each(&block) }]
  def get_nothing(env) = [200, {}, Pieces.new(env["QUERY_STRING"]) { |_| nil }]
  def get_closed(env) = [200, {}, Pieces.new(env["QUERY_STRING"]) { |block| block.call("some") }]

  # Sends the second piece when the client has confirmed, with a file, that it has the first.
  def get_lazy(env) = [200, {}, Pieces.new { |block| in_turn(env, block) }]
  def get_lazy_stream(env) = [200, {}, ->(stream) { in_turn(env, stream.method(:write)) }]

  def get_stream(_env)
    talk = lambda do |stream|
      stream << "you said: " << stream.read
      stream.flush
      stream.close
    end
    [200, {}, talk]
  end

  def get_partial(_env)
    [200, { "content-type" => "text/plain", "rack.hijack" => ->(io) { io.write("par", "tial") && io.close } }, []]
  end

  def get_full(env)
    socket = env["rack.hijack"].call
    socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall mine")
    socket.close
    [500, {}, ["nobody sees this"]]
  end

  def get_websocket_field(env) = [101, upgrade(env).merge("rack.hijack" => Echo.method(:run)), []]
  def get_websocket_body(env) = [101, upgrade(env), Echo.method(:run)]

  def get_websocket_full(env)
    head = upgrade(env).map { |name, value| "#{name}: #{value}\r\n" }.join
    socket = env["rack.hijack"].call
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n#{head}\r\n")
    Echo.run(socket)
    [500, {}, []]
  end

  def get_finished(env)
    %w[first last].each do |name|
      env["rack.response_finished"] << lambda do |rack_env, status, fields, error|
        RackApp.note(env["QUERY_STRING"], [name, rack_env.equal?(env), status, fields["x-a"], error.inspect].join(" "))
      end
    end
    [201, { "x-a" => "b" }, ["done"]]
  end

  def get_errors(env)
    env["rack.errors"].puts("told by puts")
    env["rack.errors"].write("told by write\n")
    env["rack.errors"].flush
    [200, {}, []]
  end

  def get_hints(env)
    env["rack.early_hints"].call("link" => "</a.css>; rel=preload")
    [200, {}, ["hinted"]]
  end

  def get_raise(_env) = raise("on purpose")

  def get_raise_in_body(env)
    [200, {}, Pieces.new(env["QUERY_STRING"]) { |block| [block.call("begun"), raise("on purpose")] }]
  end

  def get_lint(env) = Rack::Lint.new(->(_) { [200, { "content-type" => "text/plain" }, ["lint"]] }).call(env)

  private

  def json(object) = [200, { "content-type" => "application/json" }, [JSON.generate(object)]]

  def in_turn(env, write)
    write.call("first ")
    sleep 0.005 until File.exist?(env["QUERY_STRING"])
    write.call("second")
  end

  def upgrade(env)
    { "upgrade" => "websocket", "sec-websocket-accept" => Echo.accept(env["HTTP_SEC_WEBSOCKET_KEY"]) }
  end
end
