# frozen_string_literal: true

module Bench
  # A process of our own that ends a server's process group as soon as this program is gone, however it ended:
  # a benchmark that was killed leaves no server behind.
  class Guard
    # @param group [Integer] process group of the server
    def initialize(group)
      @reader, @writer = IO.pipe
      @pid = fork { watch(group) }
      @reader.close
    end

    # Calls it off.
    def release
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
      @writer.close
    end

    private

    def watch(group)
      %w[INT TERM HUP].each { |name| trap(name, "IGNORE") }
      @writer.close
      @reader.read # ends with this program
      Process.kill(:KILL, -group)
    rescue Errno::ESRCH
      # The server was gone already.
    ensure
      exit!(0)
    end
  end
end
