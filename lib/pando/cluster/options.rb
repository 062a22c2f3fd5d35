# frozen_string_literal: true

module Pando
  module Cluster
    # The part of the configuration that the cluster needs. Times are in seconds.
    #
    #   workers         slots at the start
    #   auto_workers    whether there may be fewer when memory is short
    #   surge           replacements that may run beside the workers that they replace
    #   unavailable     slots that may stand empty during a rollout
    #   boot_timeout    from a cold mold's exec to its readiness
    #   spawn_timeout   from an order to fork to the readiness of the new process
    #   stop_timeout    from the order to leave to SIGKILL
    #   drain           that a worker keeps its connections when it is told to leave, before its stop_timeout begins
    #   drain_delay     from the first sign of a graceful stop to its beginning
    #   health          the path of the health check that the reactor answers; nil: none
    #   grace           that a request has once it must end
    #   give_up_after   without a ready worker, after which a server that has served stops; nil: never
    #   longest_request soft and hard timeout added up; nil: requests may last for ever
    #   longest_wait    that an idle worker may spend on a job that is still arriving
    #   check_timeout   from a step of a child's self-check to the next one; nil: as long as it takes
    #   oom_score_adj   how far workers lie above the monitor; nil: unchanged
    #   control         the control socket, see Control::Spec; nil: none
    #   admin           see AdminSupervisor::Spec; nil: there is no admin process
    #   pidfile         where the monitor writes its process id; nil: nowhere
    #   restart_file    a file that users touch to reload the application; nil: none
    #   memory          see Memory::Limits
    #   canary          see Canary::Criteria; nil: a generation has passed when its first worker is ready
    #   refork_failures failed reforks in a row after which reforking is suspended; nil: never
    #   prefault        whether molds prefault the pages that their workers write to
    #   mold            :keep; :release: it ends once its workers serve; :auto: if it has much private memory
    #   exclusive       whether a worker must be gone before its successor in the same slot is forked
    #   shared          whether a mold is forked from the first pool's instead of booting from cold, if that one has
    #                   booted from cold
    #   jobs            whether workers are nodes, which do several jobs at once and no requests
    #   poison          see Poison::Terms
    #   slow            when a request is slow, see SlowEntry::Terms; nil: there is no slow log
    #   services        names, in the order in which the config declares them
    Options = Struct.new(:workers, :auto_workers, :surge, :unavailable, :boot_timeout, :spawn_timeout,
                         :stop_timeout, :drain, :drain_delay, :health, :grace, :give_up_after, :longest_request,
                         :longest_wait, :check_timeout, :oom_score_adj, :control, :admin, :pidfile, :restart_file,
                         :memory, :canary, :refork_failures, :prefault, :mold, :exclusive, :shared, :jobs, :poison,
                         :slow, :services,
                         keyword_init: true)

    class AdminSupervisor
      # The admin process: its addresses, the command that starts it, and what the command finds in its environment.
      # Processes of the same Spec are alike.
      #
      #   listen       Array of Config::Listen, or of what answers alike
      Spec = Struct.new(:listen, :command, :environment)
    end

    class Control
      # Where the control socket is, with the interface that ListenerSocket needs. Only its owner may connect.
      #
      #   required   without it the server does not start
      Spec = Struct.new(:path, :required, keyword_init: true) do
        def kind = :unix
        def tcp? = false
        def mode = 0o600
        def umask = 0o177
        def proxy_protocol = false
        # More than the clients that it serves at a time.
        def backlog = 128
        def to_s = "unix:#{path}"
      end
    end

    # Measuring and limiting the memory of processes.
    module Memory
      # What workers may take, in bytes; nil: no limit.
      #
      #   worker     private memory at which a worker is replaced between two requests
      #   hard       private memory at which it is killed during one
      #   total      memory of the whole tree at which the worker with the most is replaced
      #   group      percent of the control group's limit in use, likewise
      #   pressure   percent of time that processes wait for memory, likewise
      Limits = Struct.new(:worker, :hard, :total, :group, :pressure, keyword_init: true) do
        def any? = !to_h.compact.empty?
      end
    end

    class Poison
      # When a path is poisonous.
      #
      #   deaths  workers that a path may end before it is reported
      #   within  seconds within which they must have ended
      #   refuse  seconds for which workers then refuse the path; nil: they do not
      Terms = Struct.new(:deaths, :within, :refuse, keyword_init: true)
    end

    # The evaluation of a new generation against the one before.
    module Canary
      # What a new generation must do before it replaces the old one. It stands here because the layer above makes it
      # without loading the canary.
      #
      #   requests  that its first worker must serve
      #   seconds   that it must serve
      #   longest   seconds after which it is judged by what there is
      #   kind      :code, its code may be new; :refork, its code serves already, and was forked from a warm process for
      #             the first time; :again, the same was true of the generation before
      Criteria = Struct.new(:requests, :seconds, :longest, :kind, keyword_init: true) do
        def initialize(requests:, seconds:, longest:, kind: :code) = super

        # @param scale [Float] seconds of production that a second stands for
        def faster(scale) = with(seconds: seconds / scale, longest: longest / scale)

        def for(kind) = with(kind: kind)

        # Whether it has done that. Only the state in which the process was forked is new in a refork, and many requests
        # soon try as many states as few requests do in a long time. If that is not new either, it only has to serve.
        # @param served [Integer] requests @param age [Float] seconds
        # @param workers [Integer] that have served them
        def enough?(served, age, workers = 1)
          case kind
          when :code then served >= requests * workers && age >= seconds
          when :refork then served >= requests * workers && age >= short && served * age >= requests * seconds * workers
          else served >= requests && age >= short
          end
        end

        def facts = { requests: requests, seconds: kind == :again ? short : seconds, longest: longest }

        private

        # The seconds that even proven code must serve.
        def short = seconds / 10

        def with(**changes) = self.class.new(**to_h, **changes)
      end
    end
  end
end
