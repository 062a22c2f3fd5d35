# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    # The monitor's signals, turned into something to read in its event loop.
    # The handler only writes a byte, so it may run at any instant.
    #
    # @api private
    class Signals
      NAMES = %w[TERM QUIT INT USR2 TTIN TTOU CHLD HUP USR1].freeze
      # Of a cluster that does jobs: any other one it suspends, as the kernel does.
      QUIET = "TSTP"
      # Seconds within which the same request to stop is one, though it comes twice: timeout(1) sends TERM to the
      # process that it has started and then to the process group that this is in, a supervisor of a container may
      # tell each process, and a shell passes on what a terminal has sent to all of them. A second one that is meant,
      # "at once", comes from a hand, which is slower.
      ONE = 0.1
      STOPS = %w[TERM QUIT INT].freeze
      # A write beyond RLIMIT_FSIZE fails with Errno::EFBIG, as on a full disk, and does not end the process:
      # setrlimit(2). All that the monitor starts ignore it as well, for that survives fork and exec.
      IGNORED = "XFSZ"

      # @param quiet [Boolean] whether it quiets the nodes
      def initialize(quiet: false)
        @names = quiet ? [*NAMES, QUIET] : NAMES
        @reader, @writer = IO.pipe
        @noted_at = Array.new(@names.size, -Float::INFINITY)
      end

      def fileno = @reader.fileno

      def trap_all
        trap(IGNORED, "IGNORE")
        @names.each_with_index do |name, number|
          trap(name) { note(number) unless repeated?(name, number) }
        end
      end

      # @return [Array<String>] names, oldest first
      def take
        bytes = @reader.read_nonblock(256, exception: false)
        bytes.is_a?(String) ? bytes.bytes.filter_map { |number| @names[number] } : []
      end

      # @return [Boolean] whether one has come that is not obeyed yet
      def waiting?
        come = take
        remember(come)
        (come - ["CHLD"]).any?
      end

      # They are to be obeyed still.
      # @param names [Array<String>]
      def remember(names) = (names & @names).each { |name| note(@names.index(name)) }

      def release
        @names.each { |name| trap(name, "DEFAULT") }
        [@reader, @writer].each(&:close)
      end

      private

      def note(number) = @writer.write_nonblock(number.chr, exception: false)

      # In the handler, for it knows best when a signal has come. The first one counts.
      def repeated?(name, number)
        now = Sys.now
        return true if STOPS.include?(name) && now - @noted_at[number] < ONE

        @noted_at[number] = now
        false
      end
    end
  end
end
