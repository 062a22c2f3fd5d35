# frozen_string_literal: true

require "rbconfig"

module Chaos
  # The process of the clients.
  class LoadProcess
    CLIENTS = 12
    PATIENCE = 90 # seconds for the last requests

    # @yieldparam line [String] the outcome of a request
    def initialize(stage, seed, &take)
      output, writer = IO.pipe
      reader, @input = IO.pipe
      @pid = Process.spawn(RbConfig.ruby, "-W0", "--disable=gems", "-I", File.expand_path("..", __dir__),
                           File.join(__dir__, "load", "main.rb"), stage.socket, stage.port.to_s, seed.to_s,
                           CLIENTS.to_s, stage.direct? ? "1" : "3", stage.pools? ? "/apart" : "",
                           in: reader, out: writer)
      [reader, writer].each(&:close)
      @waiter = Process.detach(@pid)
      @reader = Thread.new { output.each_line(&take) }
    end

    # Stops after the requests that are under way.
    def stop
      @input.close unless @input.closed?
      Process.kill("KILL", @pid) unless @waiter.join(PATIENCE)
      @reader.join
    rescue Errno::ESRCH
      @reader.join
    end
  end
end
