# frozen_string_literal: true

module Pando
  module Cluster
    # What the cluster must know of the configuration. Times in seconds.
    #
    #   workers         slots at the start
    #   auto_workers    whether they may be fewer where memory asks for it
    #   surge           replacements that may live beside those they replace
    #   unavailable     slots that may stand empty during a rollout
    #   boot_timeout    from a cold mold's exec to its readiness
    #   spawn_timeout   from an order to the readiness of the process it asked for
    #   stop_timeout    from the wish to leave to SIGKILL
    #   drain_delay     from the first sign of a graceful stop to its beginning
    #   health          where the reactor is asked how we are; nil: nowhere
    #   grace           what a request is given once it must end
    #   give_up_after   that nobody has served, when a server that once did ends itself; nil: never
    #   longest_request soft and hard timeout added up; nil: requests may last for ever
    #   longest_wait    that an idle worker may spend on a job that has begun to come
    #   check_timeout   from a step of a child's self-check to the next one; nil: as long as it takes
    #   oom_score_adj   of workers; nil: left alone
    #   control         where the monitor can be asked, see Control::Spec; nil: nowhere
    #   pidfile         where the monitor writes its process id; nil: nowhere
    #   restart_file    a file that is touched to reload the application; nil: there is none
    #   memory          see Memory::Limits
    #   canary          see Canary::Criteria; nil: a generation whose first worker comes up is good
    #   refork_failures reforks in a row that may come to nothing before reforking is suspended; nil: any number
    #   trainee         whether one worker is warmed up for all, as long as the policy says; :once_at_least: until the
    #                   first refork even if the policy does not know when that is
    #   prefault        whether molds look at what their workers write to
    #   mold            :keep; :release: it goes once its workers serve; :auto: if it has much for itself
    #   exclusive       whether a worker must be gone before its successor in the same slot is born
    #   shared          whether a mold that would boot from cold is forked from the first pool's instead, where that has
    #                   booted from cold itself
    #   jobs            whether workers do jobs, and several at once, and no requests
    #   poison          see Poison::Terms
    #   services        names, in the order in which the config declares them
    Options = Struct.new(:workers, :auto_workers, :surge, :unavailable, :boot_timeout, :spawn_timeout,
                         :stop_timeout, :drain_delay, :health, :grace, :give_up_after, :longest_request,
                         :longest_wait, :check_timeout, :oom_score_adj, :control, :pidfile, :restart_file, :memory,
                         :canary, :refork_failures, :trainee, :prefault, :mold, :exclusive, :shared, :jobs, :poison,
                         :services,
                         keyword_init: true)
  end
end
