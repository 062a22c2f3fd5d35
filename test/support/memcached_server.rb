# frozen_string_literal: true

require "socket"

module Support
  # A memcached of its own, reached by a UNIX socket.
  class MemcachedServer
    include Waiting

    PROGRAM = "memcached"

    # @return [String, nil] why this machine cannot have it
    def self.obstacle
      path = ENV.fetch("PATH").split(":").map { |folder| File.join(folder, PROGRAM) }
      "memcached is not installed" unless path.any? { |file| File.executable?(file) }
    end

    # @return [String]
    attr_reader :socket_path

    # @param folder [String] a short path
    def initialize(folder)
      @socket_path = File.join(folder, "memcached.sock")
    end

    # @return [self] once it takes connections
    def start
      user = Process.uid.zero? ? %w[-u root] : [] # it refuses to run as root unless it is told to
      @pid = Process.spawn(PROGRAM, "-s", @socket_path, *user, in: File::NULL)
      wait_until(message: "memcached") { reachable? }
      self
    end

    def stop
      return unless @pid

      Process.kill("KILL", @pid)
      Process.wait(@pid)
      @pid = nil
    end

    private

    def reachable?
      UNIXSocket.new(@socket_path).close
      true
    rescue SystemCallError
      false
    end
  end
end
