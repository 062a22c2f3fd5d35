# frozen_string_literal: true

require "pando/cluster/control/snapshot"
require "pando/cluster/control/tasks"

module Pando
  module Cluster
    class Control
      # What a client may ask for, by the first word of its line.
      #
      # Owned by Control, in the monitor.
      #
      # @api private
      class Commands
        # The command cannot be carried out. The message goes to the client.
        class Refused < Pando::Error; end

        # What begins, and what undoes it.
        PAUSES = { "drain" => [Tasks::Drain, Tasks::Undrain], "quiet" => [Tasks::BeQuiet, Tasks::Unquiet] }.freeze
        STOPS = { "gracefully" => :gracefully, "quickly" => :quickly, "at_once" => :at_once }.freeze

        # @param cluster [Monitor]
        def initialize(cluster)
          @cluster = cluster
        end

        # @param line [String] untrusted
        # @param session [Session] that gets the answer, if it is known at once
        # @return [Tasks::Task, nil] that the client must wait for
        # @raise [Refused]
        def call(line, session)
          word, arguments = Line.decode(line)
          case word
          when "status", "pages" then answer(word, arguments, session)
          when "refork" then task(refork(arguments))
          when "reload" then task(reload(arguments))
          when "upgrade" then task(Tasks::UpgradeMonitor.new(@cluster))
          when "scale" then task(Tasks::Scale.new(@cluster, pool(arguments), workers(arguments)))
          when "drain", "quiet" then task(PAUSES.dig(word, arguments["undo"] ? 1 : 0).new(@cluster))
          when "stop" then stop(arguments)
          else raise Refused, "there is no such command"
          end
        end

        private

        # @return [nil] the client need not wait
        def answer(word, arguments, session)
          word == "status" ? status(session) : pages(arguments, session)
          session.finish("ok")
          nil
        end

        def status(session)
          Snapshot.new(@cluster).each { |role, pairs| session.say(role, pairs) }
        end

        # The worker writes to the client's own file; the monitor reads none of it.
        def pages(arguments, session)
          worker = worker_of(arguments)
          raise Refused, "a file and a pipe must come along" unless session.descriptors.size == 2

          wish = Line.encode("pages", jobs: whole(arguments, "jobs"), seconds: whole(arguments, "seconds"))
          raise Refused, "the worker does not listen" unless
            worker.order(Message.new(:record_pages, text: wish), session.descriptors)

          session.say("worker", **worker.identity, pool: arguments["pool"], mold: mold_of(worker)&.pid)
        end

        # Without a slot, the worker that has served most.
        def worker_of(arguments)
          workers = pool(arguments).roster.ready_workers
          workers.select! { |worker| worker.slot == whole(arguments, "slot") } if arguments["slot"]
          workers.max_by { |worker| worker.row.requests } or raise Refused, "no worker is ready there"
        end

        def mold_of(worker)
          @cluster.pools.of(worker).roster.molds.find { |mold| mold.generation == worker.generation && mold.ready? }
        end

        def whole(arguments, name)
          Integer(arguments[name].to_s, 10, exception: false)&.abs or raise Refused, "#{name} must be a number"
        end

        def task(task)
          raise Refused, "the server is stopping" if @cluster.ending?

          task
        end

        def reload(arguments)
          return Tasks::CancelReload.new(@cluster) if arguments["cancel"]

          Tasks::ReloadRelease.new(@cluster, now: arguments["now"] == "yes")
        end

        # All pools, unless the client names one.
        def refork(arguments)
          pools = arguments["pool"] ? [pool(arguments)] : @cluster.pools
          force = arguments["force"] == "yes"
          Tasks::Together.new(@cluster, pools.map { |pool| Tasks::Refork.new(@cluster, pool, force) })
        end

        # The first pool, unless the client names one.
        # @return [Pool]
        def pool(arguments)
          name = arguments["pool"] or return @cluster.pools.first
          @cluster.pools.named(name) or
            raise Refused, "there is no pool #{name}, but #{@cluster.pools.names.join(", ")}"
        end

        def workers(arguments)
          Integer(arguments["workers"], 10)
        rescue ArgumentError, TypeError
          raise Refused, "workers must be a number"
        end

        # A second command may be more impatient than the first, so it does not matter whether the server is stopping.
        def stop(arguments)
          how = STOPS.fetch(arguments.fetch("how", "gracefully")) { raise Refused, "no such way to stop" }
          Tasks::Stop.new(@cluster, how)
        end
      end
    end
  end
end
