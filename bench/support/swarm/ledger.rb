# frozen_string_literal: true

require "support/swarm/meter"

module Bench
  module Swarm
    # Reads what the meters of one contestant tell, for as long as it lives.
    class Ledger
      PIECE = Meter::SIZE * 1000

      # @param path [String] of the pipe, which it makes
      def initialize(path)
        File.mkfifo(path)
        @pipe = File.open(path, "rb+", flags: File::NONBLOCK) # and so there is always a reader, and never an end
        @done = []
        @rest = "".b
        @thread = Thread.new { read }
      end

      # @return [Array<Meter::Done>] so far, in the order in which they ended
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
