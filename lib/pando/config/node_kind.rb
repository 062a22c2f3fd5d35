# frozen_string_literal: true

module Pando
  class Config
    # One kind of job node, from a `node` line of the config:
    #
    #   node :sidekiq, count: 4, concurrency: 5, queues: %w[default], require: "./jobs.rb"
    #   node(:custom, count: 1) { MyRunner.new }
    #
    #   name         String; the name of the runner, unless `name:` sets another
    #   runner       Symbol, one of RunnerKeywords; nil: the block makes the runner
    #   factory      Proc, the block of the line; nil in a process that has not run the file
    #   count        nodes
    #   concurrency  jobs that a node runs at once
    #   queues       Array<String>
    #   files        Array<String>, absolute: what `require:` names
    #   timeout      seconds without progress while jobs run, after which a node is replaced; nil: no limit
    #   quiet_timeout seconds that running jobs get to finish when their node is replaced or about to be forked
    #   exclusive    whether a node must be gone before its successor starts
    #   shared       whether its first mold is forked from the mold of the first kind, which has loaded the same app
    #   refork, memory  as the settings of that name, for this kind
    #   surge, unavailable, canary  as those of `rollout`, for this kind
    #   options      Hash{Symbol => Object}: the line's other keywords, which belong to the runner
    #   source       where the line is
    #
    # Every process has all kinds. They are frozen.
    # rubocop:disable-next Lint/StructNewOverride -- `count` is what users call the number of nodes
    NodeKind = Struct.new(:name, :runner, :factory, :count, :concurrency, :queues, :files, :timeout, :quiet_timeout,
                          :exclusive, :shared, :refork, :memory, :surge, :unavailable, :canary, :options, :source,
                          keyword_init: true)
  end
end
