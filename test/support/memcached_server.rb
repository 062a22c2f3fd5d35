# frozen_string_literal: true

require "socket"
require_relative "local_server"

module Support
  # A memcached for one test, reachable over a UNIX socket.
  class MemcachedServer < LocalServer
    PROGRAM = "memcached"
    PACKAGE = PROGRAM

    # @param folder [String] a short path
    def initialize(folder) = super(folder, "memcached")

    # @return [self] once it accepts connections
    def start
      user = Process.uid.zero? ? %w[-u root] : [] # it refuses to run as root without this option
      @pid = Process.spawn(PROGRAM, "-s", @socket_path, *user, in: File::NULL)
      wait_until(message: "memcached") { reachable? }
      self
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
