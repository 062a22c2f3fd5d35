# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/control/commands"
require "pando/cluster/control/session"
require "pando/cluster/control/spec"
require "pando/cluster/listening/listeners"
require "pando/events"

module Pando
  module Cluster
    # The UNIX socket at which `pando status`, `pando refork` and their like ask the monitor. Only the
    # server's own user and root are heard. A client says one line, hears what happens (a record for
    # each event), and in the end `ok` or `failed`.
    #
    # Owned by the monitor, in whose loop it runs.
    #
    # @api private
    class Control
      include Brief

      # Clients at a time: the oldest makes room.
      SESSIONS = 32
      # Seconds that nobody is let in after the kernel had no descriptor for one.
      PAUSE = 1.0

      # @param spec [Spec, nil] nil: nobody is listened to
      # @param cluster [Monitor]
      # @return [Control]
      # @raise [BootError] it is required, and the address cannot be listened on
      def self.open(spec, cluster, poller)
        new(cluster, poller).tap do |control|
          control.prepare(spec)
          control.adopt
        end
      end

      # After an upgrade. A setting that has changed since does not move the socket.
      # @param state [Upgrade::State]
      def self.taken_up(state, cluster, spec, poller)
        new(cluster, poller).tap { |control| control.take_up(state, spec) }
      end

      def initialize(cluster, poller)
        @poller = poller
        @commands = Commands.new(cluster)
        @sessions = []
        @subscription = Events.subscribe { |event| tell(event) }
      end

      # Opens what another configuration wants, and changes nothing yet.
      # @param spec [Spec, nil] nil: nobody is listened to
      # @raise [BootError] it is required, and the address cannot be listened on
      def prepare(spec)
        @upcoming = door(spec)
      rescue BootError => e
        raise if spec.required

        Events.emit("control.unavailable", reason: e.message)
        @upcoming = nil
      end

      # Those who are here already are heard to their end.
      def adopt
        return if @upcoming.equal?(@door)

        shut
        @door = @upcoming
        @poller.add(@door.socket, %i[control newcomer]) if @door
      end

      def give_up
        @upcoming.close if @upcoming && !@upcoming.equal?(@door)
        @upcoming = @door
      end

      # Somebody comes, or says something.
      # @param session [Session, :newcomer]
      def hear(session)
        return admit if session == :newcomer
        return if session.closed?

        line = session.command
        begin_task(session, line) if line
        forget_closed
      end

      # Called at each turn of the monitor's loop.
      def proceed
        resume
        @sessions.each do |session|
          session.task&.check
          conclude(session)
          session.tell_obstacle
          session.proceed unless session.closed?
        end
        forget_closed
      end

      # Before an upgrade: who cannot be told the outcome by the monitor that follows is told that there is none.
      def say_farewell
        @sessions.each(&:say_farewell)
        forget_closed
      end

      # @param state [Upgrade::State]
      def to_state(state)
        @door&.to_state(state, "control")
        @sessions.each { |session| session.to_state(state) }
      end

      # See .taken_up.
      def take_up(state, spec)
        record = state.any("control") or return
        @door = @upcoming = Listening::OwnListener.taken_up(record, state, [spec].compact)
        @poller.add(@door.socket, %i[control newcomer])
      end

      # Its clients, who may wait for the end of the upgrade.
      def from_state(state)
        @sessions = state.all("session").map { |record| Session.taken_up(record, state, @poller, @commands) }
      end

      # Whoever hears the last words may start another server here at once.
      def close
        shut
        proceed
        Events.unsubscribe(@subscription)
        @sessions.each(&:close)
      end

      private

      # The one that we have, if who goes to the path finds it.
      def door(spec)
        return unless spec

        @door&.for?(spec) ? @door : Listening::OwnListener.open(spec, 0)
      end

      def shut
        return unless @door

        @poller.remove(@door.socket) unless @paused_until
        @door.close
        @door = @paused_until = nil
      end

      def admit
        socket, = @door.socket.accept_nonblock(exception: false)
        return if socket == :wait_readable
        return socket.close unless [0, Process.euid].include?(socket.getpeereid.first)

        @sessions.shift.close if @sessions.size >= SESSIONS
        @sessions << Session.new(socket, @poller)
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::ENOBUFS => e
        socket.close if socket.respond_to?(:close)
        pause(e)
      rescue SystemCallError
        socket.close if socket.respond_to?(:close)
      end

      # Who waits cannot be let in now, and would wake us again at once.
      def pause(error)
        @poller.remove(@door.socket)
        @paused_until = Sys.now + PAUSE
        Events.emit("control.failed", reason: "nobody can be let in: #{error.message}")
      end

      def resume
        return unless @paused_until && Sys.now >= @paused_until

        @poller.add(@door.socket, %i[control newcomer])
        @paused_until = nil
      rescue SystemCallError
        @paused_until = Sys.now + PAUSE
      end

      def begin_task(session, line)
        session.task = task = @commands.call(line, session)
        return unless task

        task.start
        conclude(session)
      rescue Commands::Refused => e
        session.finish("failed", reason: e.message)
      rescue StandardError => e # a fault of ours: the cluster does not end for a question
        Events.emit("control.failed", reason: "#{e.message} (#{e.class})", backtrace: e.backtrace)
        session.finish("failed", reason: "the server could not do it: #{e.message}")
      end

      def tell(event)
        @sessions.each do |session|
          next unless session.task

          session.say("event", name: event.name, **event.payload.except(:backtrace, :name))
          session.task.observe(event)
        end
      end

      def conclude(session)
        task = session.task
        return unless task&.over?

        task.failure ? session.finish("failed", reason: task.failure) : session.finish("ok", text: task.achieved)
      end

      def forget_closed = @sessions.reject!(&:closed?)
    end
  end
end
