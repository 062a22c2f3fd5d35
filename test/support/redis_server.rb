# frozen_string_literal: true

require "socket"
require_relative "local_server"

module Support
  # A redis-server for one test, reachable over a UNIX socket.
  class RedisServer < LocalServer
    class Refused < StandardError; end

    PROGRAM = "redis-server"
    PACKAGE = PROGRAM

    # @param folder [String] a short path
    # @param keep [Boolean] whether its data survive a kill
    def initialize(folder, keep: false)
      super(folder, "redis")
      @keep = keep
    end

    def url = "unix://#{socket_path}"

    # @return [self] once it accepts connections and has loaded its data
    def start
      @pid = Process.spawn(PROGRAM, "--port", "0", "--unixsocket", @socket_path, "--save", "", "--dir", @folder,
                           "--appendonly", @keep ? "yes" : "no", in: File::NULL, out: @log, err: %i[child out])
      wait_until(message: -> { "redis-server: #{File.read(@log)}" }) { reachable? }
      self
    end

    # @return [Array<String>] the ids of its connections, except for the one that asks
    def connections
      socket = connect
      socket.write("CLIENT ID\r\nCLIENT LIST\r\n")
      own = socket.gets[/\d+/]
      text = socket.read(socket.gets[/\d+/].to_i)
      text.scan(/^id=(\d+)/).flatten - [own]
    ensure
      socket&.close
    end

    # @return [String, Integer, Array, nil] the response
    # @raise [Refused]
    def call(*command)
      socket = connect
      socket.write("*#{command.size}\r\n", *command.map { |word| "$#{word.to_s.bytesize}\r\n#{word}\r\n" })
      answer(socket)
    ensure
      socket&.close
    end

    def signal(name) = Process.kill(name, @pid)

    private

    def connect = UNIXSocket.new(@socket_path)

    def reachable?
      call("PING") == "PONG"
    rescue SystemCallError, Refused
      false
    end

    # https://redis.io/docs/latest/develop/reference/protocol-spec/
    def answer(socket)
      kind, rest = socket.gets("\r\n", chomp: true).then { |line| [line[0], line[1..]] }
      case kind
      when "+" then rest
      when "-" then raise Refused, rest
      when ":" then rest.to_i
      when "$" then (socket.read(rest.to_i + 2)[..-3] unless rest == "-1")
      when "*" then (Array.new(rest.to_i) { answer(socket) } unless rest == "-1")
      end
    end
  end
end
