# frozen_string_literal: true

require "json"
require "net/http"
require "socket"

module Support
  # Asks the admin process of a server over TCP.
  class AdminClient
    attr_reader :port

    # @param server [ServerProcess] @param port [Integer] that its configuration names
    def initialize(server, port)
      @server = server
      @port = port
    end

    # @return [Net::HTTPResponse]
    def get(path, headers = {}) = request(Net::HTTP::Get.new(path, headers))

    # @param token [String, nil] nil: none
    def post(path, headers = {}, token: self.token)
      headers = { "authorization" => "Bearer #{token}", **headers } if token
      request(Net::HTTP::Post.new(path, headers))
    end

    def json(path) = JSON.parse(get(path).body)
    def metrics = get("/metrics").body

    # @return [Float] the value of a metric with these labels, as they are written
    def metric(sample) = metrics[/^#{Regexp.escape(sample)} (\S+)$/, 1]&.to_f

    # @return [String] the token that Pando has made
    def token = File.read("#{@server.folder}/control.sock.token").chomp

    # @return [Integer, nil]
    def pid = @server.tree.titled("admin").first&.pid

    # A client of /events.
    # @return [TCPSocket] whose answer has begun
    def follow(query = "")
      socket = TCPSocket.new("127.0.0.1", @port)
      socket.write("GET /events#{query} HTTP/1.1\r\nHost: localhost\r\n\r\n")
      nil until socket.gets.to_s.include?("following")
      socket
    end

    private

    def request(request)
      http = Net::HTTP.new("127.0.0.1", @port)
      http.open_timeout = http.read_timeout = 60
      http.max_retries = 0
      http.start { |client| client.request(request) }
    end
  end
end
