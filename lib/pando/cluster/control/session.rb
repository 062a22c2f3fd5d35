# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/cluster/open_files"

module Pando
  module Cluster
    class Control
      # One client of the control socket: it sends one command, and receives its progress and its outcome. It can
      # neither stall the monitor nor fill its memory. A service of the configuration may only ask. Owned by Control.
      class Session
        include Brief
        extend Serializable

        serialize input: :bytes, output: :bytes, since: :number, asked: :bytes

        # Bytes of output that may wait for a slow client.
        BACKLOG = 1_048_576
        # Bytes that may wait for a client that follows events: the others are sent later.
        PROMPT = 65_536
        # Descriptors that a command may bring.
        DESCRIPTORS = 2
        # Seconds that a client may take to send its command, and to read the outcome.
        TIMEOUT = 10.0

        def initialize(socket, poller, service = nil)
          @socket = socket
          @service = service
          @poller = poller.add(socket, [:control, self])
          @input = +""
          @output = +""
          @descriptors = []
          @since = Sys.now
        end

        # @return [Child, nil] the service that has asked; nil: an operator or the admin process
        attr_reader :service
        # @return [Tasks::Task, nil] that the client waits for; nil: no command yet, or it is answered
        attr_accessor :task
        # @return [Array<Integer>] descriptors that came with its command, until it is answered
        attr_reader :descriptors

        # After an upgrade: the commands give it the task back.
        def self.taken_up(record, state, poller, commands)
          socket = Socket.for_fd(state.take(record.integer(:descriptor)))
          seat = record.read(:service, :integer)
          new(socket, poller, seat && state.roster[seat]).take_up(record).tap { |session| session.ask_again(commands) }
        end

        def ask_again(commands)
          @task = commands.call(@asked, self) if @asked
        rescue Commands::Refused => e
          finish("failed", reason: e.message)
        end

        # Before an upgrade: the next image of the monitor cannot tell how this task ends.
        def fail_unfinished
          return if task.nil? || task.lasting?

          finish("failed", reason: "the monitor is being upgraded: ask `pando status` what becomes of it")
        end

        # A session that is answered, or whose client does not read, ends with this image.
        def to_state(state)
          return if closed? || @finished || @output.bytesize > Line::LIMIT

          state.add("session", descriptor: state.keep(@socket), service: service&.seat, **serialized_fields)
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
          chunk, _, descriptors, stripped = Sys.receive_record(@socket, Line::LIMIT)
          return if chunk == false
          return refuse_stripped(descriptors) if stripped
          return close && nil unless take_descriptors(descriptors) && !chunk.to_s.empty?
          return if @asked

          @input << chunk
          take_line
        rescue SystemCallError
          close && nil
        end

        def say(word, pairs = {})
          return if closed?

          @output << Line.encode(word, pairs)
          return close if @output.bytesize > BACKLOG

          flush unless @gathering
        end

        # Records of the block are sent at its end.
        def gather
          @gathering = true
          yield
        ensure
          @gathering = false
        end

        # @return [Boolean] whether the client has read nearly all that it was sent
        def prompt? = @output.bytesize < PROMPT

        # Tells the client once what its task waits for.
        def tell_obstacle
          reason, seconds = @task&.obstacle
          return if reason == @obstacle

          @obstacle = reason
          say("waiting", reason: reason, seconds: seconds&.then { |left| [left, 0.0].max.ceil }) if reason
        end

        # Sends the outcome. The connection ends when the client has read it.
        def finish(word, pairs = {})
          @task = nil
          @finished = true
          forget_descriptors
          say(word, pairs)
        end

        def proceed
          return close if !@asked && Sys.now - @since > TIMEOUT

          flush
        end

        private

        # The command came without what belongs to it, because the monitor has no room for more descriptors.
        def refuse_stripped(descriptors)
          descriptors.each { |fd| Sys.close_fd(fd) }
          finish("failed", reason: OpenFiles.explain(Errno::EMFILE.new)) unless @asked
          nil
        end

        # @return [Boolean] false: too many
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
          elsif @input.bytesize >= Line::LIMIT
            finish("failed", reason: "a command is a line of less than #{Line::LIMIT} bytes")
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

        # Does not wait for a client that never reads its outcome.
        def give_up_late
          @finished_at ||= Sys.now if @finished
          close if @finished_at && Sys.now - @finished_at > TIMEOUT
        end
      end
    end
  end
end
