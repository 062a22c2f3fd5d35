# frozen_string_literal: true

module Pando
  module Swarm
    # One kind of job node, as a `node` line of the config says it:
    #
    #   node :sidekiq, count: 4, concurrency: 5, queues: %w[default], require: "./jobs.rb"
    #   node(:custom, count: 1) { MyRunner.new }
    #
    #   name         String; that of the runner, unless `name:` says another
    #   runner       Symbol, which of Runners it is; nil: the block makes it
    #   factory      Proc, the block of the line; nil in a process that has not run the file
    #   count        nodes
    #   concurrency  jobs that a node does at once
    #   queues       Array<String>
    #   files        Array<String>, absolute: what `require:` names
    #   timeout      seconds without progress while jobs run, after which a node is replaced; nil: it may take for ever
    #   quiet_timeout seconds that running jobs are given when their node is to be forked or is replaced
    #   exclusive    whether a node's successor may only be born when it is gone
    #   shared       whether its first mold is forked from that of the first kind, which has loaded the same application
    #   refork, memory  as the settings of that name, for this kind
    #   surge, unavailable, canary  as those of `rollout`, for this kind
    #   options      Hash{Symbol => Object}: what else the line says, the runner's business
    #   source       where the line is
    #
    # Every process has them; frozen.
    # rubocop:disable-next Lint/StructNewOverride -- `count` is how many there are, in everybody's words
    Kind = Struct.new(:name, :runner, :factory, :count, :concurrency, :queues, :files, :timeout, :quiet_timeout,
                      :exclusive, :shared, :refork, :memory, :surge, :unavailable, :canary, :options, :source,
                      keyword_init: true)
  end
end
