# frozen_string_literal: true

require "socket"

module Support
  # A redis-server of its own that keeps nothing, reached by a UNIX socket.
  class RedisServer
    include Waiting

    PROGRAM = "redis-server"

    # @return [String, nil] why this machine cannot have it
    def self.obstacle
      path = ENV.fetch("PATH").split(":").map { |folder| File.join(folder, PROGRAM) }
      "redis-server is not installed" unless path.any? { |file| File.executable?(file) }
    end

    # @return [String]
    attr_reader :socket_path

    # @param folder [String] a short path
    def initialize(folder)
      @socket_path = File.join(folder, "redis.sock")
      @log = File.join(folder, "redis.log")
    end

    # @return [self] once it takes connections
    def start
      @pid = Process.spawn(PROGRAM, "--port", "0", "--unixsocket", @socket_path, "--save", "", "--appendonly", "no",
                           in: File::NULL, out: @log, err: %i[child out])
      wait_until(timeout: 30, message: -> { "redis-server: #{File.read(@log)}" }) { reachable? }
      self
    end

    # @return [Array<String>] the ids of its connections, less the one that asks
    def connections
      socket = connect
      socket.write("CLIENT ID\r\nCLIENT LIST\r\n")
      own = socket.gets[/\d+/]
      text = socket.read(socket.gets[/\d+/].to_i)
      text.scan(/^id=(\d+)/).flatten - [own]
    ensure
      socket&.close
    end

    def stop
      return unless @pid

      Process.kill("KILL", @pid)
      Process.wait(@pid)
      @pid = nil
    end

    private

    def connect = UNIXSocket.new(@socket_path)

    def reachable?
      connect.close
      true
    rescue SystemCallError
      false
    end
  end
end
