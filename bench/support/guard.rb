# frozen_string_literal: true

module Bench
  # A separate process that kills a server's process group as soon as this program has ended, however it ended. So a
  # benchmark that was killed leaves no server behind.
  class Guard
    # @param group [Integer] process group of the server
    def initialize(group)
      @reader, @writer = IO.pipe
      @pid = fork { watch(group) }
      @reader.close
    end

    # Stops guarding.
    def release
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
      @writer.close
    end

    private

    def watch(group)
      %w[INT TERM HUP].each { |name| trap(name, "IGNORE") }
      @writer.close
      @reader.read # returns when this program has ended
      Process.kill(:KILL, -group)
    rescue Errno::ESRCH
      # The server had already ended.
    ensure
      exit!(0)
    end
  end
end
