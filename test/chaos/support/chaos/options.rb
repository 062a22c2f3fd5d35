# frozen_string_literal: true

require "optparse"
require "chaos/fault"
require "chaos/roll"
require "support/checkout"

module Chaos
  # The command line.
  Options = Struct.new(:minutes, :seed, :only, :artefacts, :direct, :nodes, :release, :threads, :pools, :keep, :quiet,
                       keyword_init: true) do
    def self.parse(arguments)
      options = new(minutes: 3.0, seed: Random.new_seed % 1_000_000, only: nil, quiet: false)
      parser(options).parse!(arguments)
      abort "--pools wants the reactor: leave --direct out" if options.pools && options.direct
      Fault.choose(options.only, options.other_pools)
      options.artefacts ||= Support::Checkout.path("tmp", "chaos", options.seed.to_s)
      options
    rescue OptionParser::ParseError => e
      abort "#{e.message}\n#{parser(options)}"
    rescue Fault::Unknown => e
      abort e.message
    end

    def self.parser(options)
      OptionParser.new("Usage: bin/chaos [options]") do |parser|
        parser.on("--minutes N", Float, "how long (3)") { |minutes| options.minutes = minutes }
        parser.on("--seed S", Integer, "the faults and their order (a new one)") { |seed| options.seed = seed }
        parser.on("--only LIST", Array, "these faults only, by name") { |names| options.only = names }
        parser.on("--direct", "without a reactor: the workers hold the connections") { options.direct = true }
        parser.on("--nodes", "with a pool of job nodes beside the workers") { options.nodes = true }
        parser.on("--release", "molds are let go while their workers serve") { options.release = true }
        parser.on("--threads N", /\A(?:[1-9]\d?|auto)\z/, "requests at once in a worker, or auto (1)") do |threads|
          options.threads = threads
        end
        parser.on("--pools", "with a pool of workers for some paths") { options.pools = true }
        parser.on("--artefacts FOLDER", "schedule and logs (tmp/chaos/SEED)") { |path| options.artefacts = path }
        parser.on("--keep", "the logs of a run without a violation, too") { options.keep = true }
        parser.on("--quiet", "only the report") { options.quiet = true }
      end
    end
    private_class_method :parser

    # @return [Array<String>, nil] arguments of the `node` line, from the seed; nil: there are no nodes
    def node_manners = ([*("shared" if seed[1] == 1), *("exclusive" if seed[2] == 1)] if nodes)

    # @return [Array<String>] the pools beside the main one
    def other_pools = [*(Roll::NODES if nodes), *(Roll::APART if pools)]

    # @return [String] the command that repeats the run
    def replay
      ["bin/chaos --minutes #{minutes} --seed #{seed}", *("--direct" if direct), *("--nodes" if nodes),
       *("--release" if release), *("--threads #{threads}" if threads), *("--pools" if pools),
       *(%(--only "#{only.join(",")}") if only)].join(" ")
    end
  end
end
