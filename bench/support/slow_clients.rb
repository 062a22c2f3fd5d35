# frozen_string_literal: true

require "json"
require "support/native"
require "support/priority"

module Bench
  # Runs bench/native/slowclients: many clients that are slow, or keep an idle connection.
  class SlowClients
    class Failed < StandardError; end

    READY_WITHIN = 60 # seconds
    POKED_WITHIN = 120

    # Runs the clients for as long as the block runs.
    #
    # @param options [Hash] of the program, with underscores in the names
    # @yieldparam clients [SlowClients]
    # @return [Hash{Symbol => Hash}] for each kind: the number of answered, refused, cut and open connections
    def self.run(port, cores: nil, **options)
      clients = new(port, cores, options)
      yield clients
      clients.finish
    ensure
      clients&.stop
    end

    def initialize(port, cores, options)
      arguments = { port: port, **options }.flat_map { |name, value| ["--#{name.to_s.tr("_", "-")}", value.to_s] }
      @program = IO.popen([*Priority.prefix(Priority::LOW, cores), Native.program("slowclients"), *arguments], "r+")
      @all = expect("ready", READY_WITHIN)
    end

    # @return [Boolean] whether all of them could connect in time
    def all? = !@all.nil?

    # Sends one request on each of some idle connections.
    #
    # @return [Integer] how many were answered
    def poke(count)
      @program.puts("poke #{count}")
      expect("poked", POKED_WITHIN)&.split&.last.to_i
    end

    def finish
      @program.close_write
      line = @program.each_line.find { |said| said.start_with?("{") } || raise(Failed, "slowclients ended early")
      JSON.parse(line, symbolize_names: true)
    end

    def stop
      Process.kill(:KILL, @program.pid) unless @program.closed?
      @program.close unless @program.closed?
    rescue Errno::ESRCH
      @program.close
    end

    private

    def expect(word, seconds)
      line = @program.gets if @program.wait_readable(seconds)
      line if line&.start_with?(word)
    end
  end
end
