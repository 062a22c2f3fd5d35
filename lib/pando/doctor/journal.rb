# frozen_string_literal: true

require "json"
require "socket"
require "pando/doctor/subject/wire"
require "pando/sys"

module Pando
  module Doctor
    # Collects the reports (facts) that the stage's processes send over their wire, and waits for them. Owned by the
    # stage, in the command's process. A thread reads, so that no process has to wait until it is heard.
    #
    # @api private
    class Journal
      # An expected report did not come in time, or no process is left to send it.
      class Silence < StandardError; end

      LONGEST = 1 << 20 # bytes of a datagram
      LAST_REPORT = 5.0 # seconds
      LIVENESS_INTERVAL = 0.1 # seconds between two looks whether the server is still alive

      # @return [Array<Hash>] in the order of their arrival
      attr_reader :facts

      # @param folder [String] of the stage
      def initialize(folder)
        @folder = folder
        @facts = []
        @lock = Mutex.new
        @news = ConditionVariable.new
        @socket = Socket.new(:UNIX, :DGRAM)
        @socket.bind(Addrinfo.unix(File.join(folder, Subject::Wire::NAME)))
        @listener = Thread.new { listen }
      end

      # @param kind [Symbol] :event, :snapshot, :record, :origin, ...
      # @return [Array<Hash>] facts with that key
      def reports(kind) = @lock.synchronize { @facts.select { |fact| fact.key?(kind) } }

      # @return [Integer] the index of the next fact
      def mark = @lock.synchronize { @facts.size }

      # Waits for a fact.
      # @param from [Integer] earlier facts do not count, see {#mark}
      # @param alive [#call] false: no process is left to report it
      # @yieldparam fact [Hash] @yieldreturn [Object, nil] the result; nil: this is not the fact
      # @raise [Silence]
      def await(seconds, from = 0, alive: -> { true })
        deadline = Sys.now + seconds
        @lock.synchronize do
          loop do
            while (fact = @facts[from])
              found = yield fact
              return found if found

              from += 1
            end
            wait(deadline, alive)
          end
        end
      end

      # Called when all processes have ended: once this datagram has arrived, all earlier ones have.
      def hear_all
        Subject::Wire.new(@folder).tell(end: Process.pid)
        await(LAST_REPORT) { |fact| fact.key?(:end) }
      rescue Silence
        nil
      end

      def close
        @listener.kill.join
        @socket.close
      end

      private

      def wait(deadline, alive)
        left = deadline - Sys.now
        raise Silence if left <= 0 || !(alive.call || @socket.wait_readable(0))

        @news.wait(@lock, [left, LIVENESS_INTERVAL].min)
      end

      def listen
        loop { hear(@socket.recv(LONGEST)) }
      end

      def hear(text)
        fact = JSON.parse(text, symbolize_names: true)
        fact = JSON.parse(File.read(fact[:file], encoding: Encoding::UTF_8), symbolize_names: true) if fact.key?(:file)
        @lock.synchronize do
          @facts << fact
          @news.broadcast
        end
      rescue JSON::ParserError, SystemCallError
        nil
      end
    end
  end
end
