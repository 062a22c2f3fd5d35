# frozen_string_literal: true

require "pando/fork_safety/weak_set"
require "pando/native"
require "pando/sys"

module Pando
  module ForkSafety
    module Libraries
      # Action Cable's server in this process: its WebSockets, the event loop that serves them, its thread pools, and
      # the subscription adapter (pubsub) with its listener and writer threads. None of these survives a fork. Rails'
      # own ActionCable.server.restart stops neither the event loop nor the heartbeat timer, and waits without a limit.
      #
      # Lives in molds, workers and services. The parts are private to Action Cable, but their names have been the same
      # from 5.0 to 8.2. What 8.2 adds: a socket object between a stream and its connection, and an executor that runs
      # what the event loop's own executor ran before.
      module CableServer
        # Seconds for the threads to end before a fork.
        LONGEST = 2.0
        # Seconds for sockets to close when their clients have not closed in time.
        FORCED = 0.25
        # Seconds between two checks.
        LOOK = 0.002
        PARTS = %i[@heartbeat_timer @worker_pool @pubsub @executor @event_loop].freeze
        # The open connections: an array, and from 8.2 on a hash.
        CONNECTIONS = %i[@connections @connections_map].freeze
        EVENT_LOOP = %r{/action_cable/.*stream_event_loop\.rb}
        OWN_ID = /\AActionCable-PID-\d+\z/

        @told = WeakSet.new

        class << self
          # Sends each client that has not been told yet Rails' own message to reconnect, and closes its WebSocket. Call
          # it again until it returns true, because each client closes its own side later.
          #
          # @return [Boolean] whether no WebSocket is left and the work that closing them caused is done
          def say_goodbye
            return true unless server

            connections.each { |connection| close(connection) }
            gone = connections.empty? && sockets.empty? && pools.all? { |pool| settled?(pool) }
            stop_heartbeat if gone
            gone
          end

          # Stops all threads and closes the selector. Whatever is used afterwards starts again. It first writes the
          # broadcasts that solid_cable has queued.
          #
          # @return [Array<String>] what did not end in time, or not as it should have
          def stop(seconds = LONGEST)
            left = stop_parts(Sys.now + seconds) if server && running?
            untold = @untold
            @untold = nil
            [*left, *untold]
          end

          # In a child: forgets the inherited parts, which belong to the parent. Threads of the parent may have started
          # something between {stop} and the fork.
          def forget
            return unless server

            [*PARTS, *CONNECTIONS].each { |name| server.instance_variable_set(name, nil) }
            @told = WeakSet.new
            @untold = nil
            cable = server.config.cable
            cable.delete(:id) if cable.respond_to?(:delete) && OWN_ID.match?(cable[:id].to_s) # it has the parent's pid
            nil
          end

          # @return [Boolean] whether the calling thread is starting Action Cable's event loop
          def starting? = caller_locations.any? { |frame| EVENT_LOOP.match?(frame.path) }

          private

          def server = ActionCable.instance_variable_get(:@server)
          def part(name, of = server) = of&.instance_variable_get(name)
          def running? = [*PARTS, *CONNECTIONS].any? { |name| part(name) }

          # @return [Array<ActionCable::Connection::Base>] open ones, including those without a welcome message yet
          def connections = [*server.connections, *streams.filter_map { |stream| connection_of(stream) }].uniq

          def streams = (part(:@map, part(:@event_loop)) || {}).values.map(&:value)
          def sockets = (part(:@map, part(:@event_loop)) || {}).keys

          # Up to 8.1, a connection hears itself of what happens at its socket.
          def connection_of(stream)
            target = part(:@event_target, part(:@socket_object, stream))
            target.is_a?(ActionCable::Connection::Base) ? target : target&.connection
          end

          def close(connection)
            return if @told.include?(connection)

            @told.add(connection)
            connection.close(reason: ActionCable::INTERNAL[:disconnect_reasons][:server_restart], reconnect: true)
          rescue IOError, SystemCallError
            nil # its client has gone
          rescue StandardError => e
            @untold = "its WebSockets, whose clients could not be told to reconnect (#{e.class}: #{e.message})"
          end

          # It pings open connections, and starts again with the next one. At the end of a worker it would pass for work
          # that is left to do.
          def stop_heartbeat
            timer = server.mutex.synchronize do
              part(:@heartbeat_timer).tap { server.instance_variable_set(:@heartbeat_timer, nil) }
            end
            timer&.shutdown
          end

          def stop_parts(by)
            hang_up([Sys.now + FORCED, by].min)
            timer, workers, pubsub, executor, event_loop = take
            timer&.shutdown
            [("its workers" unless stop_pool(workers&.executor, by)), *stop_pubsub(pubsub, by),
             ("its executor" unless stop_pool(part(:@executor, executor), by)),
             ("its event loop" unless stop_loop(event_loop, by))].compact
          end

          # Closes the sockets of clients that did not close in time, and of clients that came since.
          def hang_up(by)
            say_goodbye
            streams.each(&:close)
            pause until say_goodbye || Sys.now >= by
          end

          # From here on, Action Cable creates again whatever it needs.
          def take
            server.mutex.synchronize do
              CONNECTIONS.each { |name| part(name)&.clear }
              PARTS.map { |name| part(name).tap { server.instance_variable_set(name, nil) } }
            end
          end

          def pools = [part(:@worker_pool)&.executor, part(:@executor, part(:@executor))].compact

          # @return [Boolean] whether everything posted to it is done
          def settled?(pool) = pool.scheduled_task_count == pool.completed_task_count

          def stop_pool(executor, by)
            return true unless executor

            executor.shutdown
            executor.wait_for_termination([by - Sys.now, 0].max) || !executor.kill
          end

          def stop_pubsub(adapter, by)
            return [] unless adapter

            listener = part(:@listener, adapter)
            sockets = redis_connections(adapter, listener)
            return [] if end_listener(adapter, listener) || shut_down(adapter, by)

            part(:@thread, listener)&.kill
            writer = part(:@thread, part(:@broadcaster, adapter))
            writer&.alive? ? ["its writer, which has broadcasts queued"] : ["its listener"]
          ensure
            sockets&.each { |one| attempt { one.close } }
          end

          # PostgreSQL's listener checks once a second whether to end, and a shutdown would first start it. It
          # disconnects when it is killed.
          def end_listener(adapter, listener)
            return false unless adapter.class.name.end_with?("::PostgreSQL") # by name, to load nothing here

            part(:@thread, listener)&.kill&.join(LONGEST)
            true
          end

          # Rails waits for ever if it cannot reach the adapter's server.
          def shut_down(adapter, by)
            thread = Thread.new { adapter.shutdown }
            thread.report_on_exception = false
            !thread.join([by - Sys.now, 0].max).nil?
          rescue StandardError
            true # the adapter has failed, and is not used again
          ensure
            thread&.kill
          end

          # An idle connection would be open in the children too.
          def redis_connections(adapter, listener)
            found = [part(:@redis_connection_for_broadcasts, adapter), part(:@subscribed_client, listener)]
            found.select { |one| one.respond_to?(:close) }
          end

          def stop_loop(event_loop, by)
            return true unless event_loop

            thread = part(:@thread, event_loop)
            pause while thread&.alive? && !part(:@todo, event_loop).empty? && Sys.now < by
            event_loop.stop
            ended = end_thread(part(:@thread, event_loop), [by - Sys.now, FORCED].max)
            close_leftovers(event_loop)
            stop_pool(part(:@executor, event_loop), by) && ended
          end

          def end_thread(thread, seconds)
            thread.nil? || !thread.join(seconds).nil? || !thread.kill.join(FORCED).nil?
          end

          def close_leftovers(event_loop)
            selector = part(:@nio, event_loop)
            attempt { selector.close } unless selector.nil? || selector.closed?
            part(:@map, event_loop).each_key { |io| attempt { io.close } }
          end

          def attempt
            yield
          rescue StandardError
            nil # closed already
          end

          def pause = sleep(LOOK)
        end
      end
    end
  end
end
