# frozen_string_literal: true

require "support/swarm/meter"

module Bench
  module Swarm
    # Reads the records of one contestant's meters, for as long as it lives.
    class Ledger
      PIECE = Meter::SIZE * 1000

      # @param path [String] of the pipe, which it creates
      def initialize(path)
        File.mkfifo(path)
        @pipe = File.open(path, "rb+", flags: File::NONBLOCK) # opened for writing too, so that it never ends
        @done = []
        @rest = "".b
        @thread = Thread.new { read }
      end

      # @return [Array<Meter::Done>] so far, in the order of completion
      attr_reader :done

      def size = @done.size

      def close
        @thread.kill.join
        @pipe.close
      end

      private

      def read
        loop do
          @rest << @pipe.readpartial(PIECE)
          whole = @rest.slice!(0, @rest.bytesize / Meter::SIZE * Meter::SIZE)
          @done.concat(Meter.read(whole))
        end
      end
    end
  end
end
