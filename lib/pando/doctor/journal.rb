# frozen_string_literal: true

require "json"
require "socket"
require "pando/doctor/subject/wire"
require "pando/sys"

module Pando
  module Doctor
    # What the processes of a stage tell over their wire, in its order, and waiting for it. Lives in
    # the process of the command; a thread of its own reads, so that nobody has to wait to be heard.
    #
    # @api private
    class Journal
      # Raised where something was not told in time, or cannot be any more.
      class Silence < StandardError; end

      LONGEST = 1 << 20 # bytes of a datagram
      LAST_WORDS = 5.0 # seconds
      A_WHILE = 0.1 # seconds between two looks whether there is still somebody to tell anything

      # @return [Array<Hash>] all that was told
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

      # @return [Array<Hash>] facts of one kind: :event, :snapshot, :record, :origin
      def told(kind) = @lock.synchronize { @facts.select { |fact| fact.key?(kind) } }

      # @return [Integer] where the facts to come begin
      def mark = @lock.synchronize { @facts.size }

      # Waits for a fact.
      # @param seconds [Float] @param from [Integer] facts before it are old
      # @param alive [#call] false: nobody is left to tell it
      # @yieldparam fact [Hash] @yieldreturn [Object, nil] what is wanted of it
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

      # Once all processes have ended: what they told before has been heard when this word is.
      def hear_all
        Subject::Wire.new(@folder).tell(end: Process.pid)
        await(LAST_WORDS) { |fact| fact.key?(:end) }
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

        @news.wait(@lock, [left, A_WHILE].min)
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
