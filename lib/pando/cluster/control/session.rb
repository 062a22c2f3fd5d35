# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/serializable"
require "pando/cluster/control/record"

module Pando
  module Cluster
    class Control
      # One client of the control socket: it asks for one thing, is told how that goes on, and
      # then how it ended. It can neither stall the monitor nor fill its memory.
      #
      # Owned by Control, in the monitor.
      #
      # @api private
      class Session
        include Brief
        extend Serializable

        serialize input: :bytes, output: :bytes, since: :number, asked: :bytes

        # Bytes that may wait for a client which does not read.
        BACKLOG = 1_048_576
        # That may come along with a command.
        DESCRIPTORS = 2
        # Seconds that a client may take to say what it wants.
        PATIENCE = 10.0

        # @param socket [UNIXSocket]
        # @param poller [Sys::Poller] that it stays in until it is closed
        def initialize(socket, poller)
          @socket = socket
          @poller = poller.add(socket, [:control, self])
          @input = +""
          @output = +""
          @descriptors = []
          @since = Sys.now
        end

        # What it waits for, nil: it has not said what it wants, or has been told.
        # @return [Task, nil]
        attr_accessor :task

        # What came along with its command, until it is answered.
        # @return [Array<Integer>] descriptors
        attr_reader :descriptors

        # After an upgrade.
        # @param record [Upgrade::Record] @param state [Upgrade::State]
        # @param commands [Commands] that give it the task back
        def self.taken_up(record, state, poller, commands)
          socket = Socket.for_fd(state.take(record.integer(:descriptor)))
          new(socket, poller).take_up(record).tap { |session| session.ask_again(commands) }
        end

        def ask_again(commands)
          @task = commands.call(@asked, self) if @asked
        rescue Commands::Refused => e
          finish("failed", reason: e.message)
        end

        # Before an upgrade: to wait for what ends with this image of the monitor is in vain.
        def say_farewell
          return if task.nil? || task.lasting?

          finish("failed", reason: "the monitor has been upgraded meanwhile: ask `pando status` what became of it")
        end

        # One that has been told the last words, or does not read, ends with this image.
        # @param state [Upgrade::State]
        def to_state(state)
          return if closed? || @finished || @output.bytesize > Record::LIMIT

          state.add("session", descriptor: state.keep(@socket), **serialized_fields)
        end

        def closed? = @socket.closed?

        def close
          return if closed?

          @poller.remove(@socket)
          @socket.close
          forget_descriptors
        end

        # @return [String, nil] its command, once the line is whole
        def command
          chunk, _, descriptors = Sys.receive_record(@socket, Record::LIMIT)
          return if chunk == false
          return close && nil unless take_descriptors(descriptors) && chunk && !chunk.empty?
          return if @asked

          @input << chunk
          take_line
        rescue SystemCallError
          close && nil
        end

        def say(word, pairs = {})
          return if closed?

          @output << Record.encode(word, pairs)
          @output.bytesize > BACKLOG ? close : flush
        end

        # Its task must wait for something, and that is news.
        def tell_obstacle
          reason, seconds = @task&.obstacle
          return if reason == @obstacle

          @obstacle = reason
          say("waiting", reason: reason, seconds: seconds&.then { |left| [left, 0.0].max.ceil }) if reason
        end

        # The last word: the connection ends when it has been read.
        def finish(word, pairs = {})
          @task = nil
          @finished = true
          forget_descriptors
          say(word, pairs)
        end

        # Called at each turn of the monitor's loop.
        def proceed
          return close if !@asked && Sys.now - @since > PATIENCE

          flush
        end

        private

        # @return [Boolean] false: more than anybody needs
        def take_descriptors(descriptors)
          @descriptors.concat(descriptors.to_a)
          return @descriptors.size <= DESCRIPTORS unless @asked

          forget_descriptors
          true
        end

        def forget_descriptors
          @descriptors.each { |fd| Sys.close_fd(fd) }
          @descriptors = []
        end

        def take_line
          if (line = @input[/\A[^\n]*\n/])
            @asked = line
          elsif @input.bytesize >= Record::LIMIT
            finish("failed", reason: "a command is a line of less than #{Record::LIMIT} bytes")
            nil
          end
        end

        def flush
          until @output.empty?
            written = @socket.write_nonblock(@output, exception: false)
            return give_up_late if written == :wait_writable

            @output = @output.byteslice(written..)
          end
          close if @finished
        rescue SystemCallError
          close
        end

        # Who does not read his last words is not waited for.
        def give_up_late
          @finished_at ||= Sys.now if @finished
          close if @finished_at && Sys.now - @finished_at > PATIENCE
        end
      end
    end
  end
end
