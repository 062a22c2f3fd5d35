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
      run
      wait_until(message: -> { "redis-server: #{File.read(@log)}" }) { reachable? }
      self
    end

    # Restarts it with data that it loads until #load_the_rest. Meanwhile it refuses most commands.
    # @return [self] once it loads
    def restart_loading
      call("CONFIG", "SET", "rdbcompression", "no")
      call("EVAL", "for i = 1, 2000 do redis.call('SET', 'filler' .. i, string.rep('x', 1024)) end", 0)
      call("SAVE")
      stop
      run("--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024") # microseconds for each key
      wait_until(message: -> { "redis-server: #{File.read(@log)}" }) { loading? }
      self
    end

    def load_the_rest
      call("CONFIG", "SET", "key-load-delay", "0")
      wait_until { reachable? }
    end

    # @return [Integer] how many commands it has refused because it loads its data
    def refusals = call("INFO", "errorstats")[/^errorstat_LOADING:count=(\d+)/, 1].to_i

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

    def run(*options)
      @pid = Process.spawn(PROGRAM, "--port", "0", "--unixsocket", @socket_path, "--save", "", "--dir", @folder,
                           "--appendonly", @keep ? "yes" : "no", *options,
                           in: File::NULL, out: @log, err: %i[child out])
    end

    def connect = UNIXSocket.new(@socket_path)

    def reachable?
      call("PING") == "PONG"
    rescue SystemCallError, Refused
      false
    end

    def loading?
      call("INFO", "persistence").include?("loading:1")
    rescue SystemCallError
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
