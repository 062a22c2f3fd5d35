# frozen_string_literal: true

module Pando
  module Cluster
    # The monitor's signals, turned into something to read in its event loop.
    # The handler only writes a byte, so it may run at any instant.
    #
    # @api private
    class Signals
      NAMES = %w[TERM QUIT INT USR2 TTIN TTOU CHLD HUP USR1].freeze

      def initialize
        @reader, @writer = IO.pipe
      end

      def fileno = @reader.fileno

      def trap_all
        NAMES.each_with_index do |name, number|
          trap(name) { note(number) }
        end
      end

      # @return [Array<String>] names, oldest first
      def take
        bytes = @reader.read_nonblock(256, exception: false)
        bytes.is_a?(String) ? bytes.bytes.filter_map { |number| NAMES[number] } : []
      end

      # They have no effect from now on, unless one has come that is not obeyed yet.
      # @return [Boolean] whether that is so; else all is as it was
      def ignore
        (NAMES - ["CHLD"]).each { |name| trap(name, "IGNORE") }
        come = take
        return true if (come - ["CHLD"]).empty?

        trap_all
        come.each { |name| note(NAMES.index(name)) }
        false
      end

      def release
        NAMES.each { |name| trap(name, "DEFAULT") }
        [@reader, @writer].each(&:close)
      end

      private

      def note(number) = @writer.write_nonblock(number.chr, exception: false)
    end
  end
end
