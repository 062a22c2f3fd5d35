# frozen_string_literal: true

require_relative "waiting"

module Support
  # A server program for one test, reachable over a UNIX socket in the given folder. A subclass starts it, and names its
  # PROGRAM and its PACKAGE.
  class LocalServer
    include Waiting

    # @return [String, nil] why this machine does not support it
    def self.obstacle
      folders = self::PROGRAM.start_with?("/") ? [""] : ENV.fetch("PATH").split(":")
      "#{self::PACKAGE} is not installed" unless folders.any? { |one| File.executable?(File.join(one, self::PROGRAM)) }
    end

    # @return [String]
    attr_reader :socket_path

    # @param folder [String] a short path
    # @param name [String] of its files there
    def initialize(folder, name)
      @folder = folder
      @socket_path = File.join(folder, "#{name}.sock")
      @log = File.join(folder, "#{name}.log")
    end

    def stop
      return unless @pid

      Process.kill("KILL", @pid)
      Process.wait(@pid)
      @pid = nil
    end
  end
end
