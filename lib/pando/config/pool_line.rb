# frozen_string_literal: true

require "pando/config/node_line"
require "pando/config/types"

module Pando
  class Config
    # A pool of workers for some paths, from a `pool` line of the config:
    #
    #   pool :reports, paths: ["/reports"], workers: 1, timeout: 300
    #
    #   name    String
    #   paths   Array<String>: its workers serve these paths and all below them
    #   config  Config with the pool's own settings
    #   source  where the line is
    #
    # Every process has all of them. They are frozen.
    PathPool = Struct.new(:name, :paths, :config, :source, keyword_init: true)

    # A `pool` line of a config file: its keywords, and the PathPool that it declares.
    #
    # @api private
    class PoolLine
      # Pools of one server, with that of the other paths: the reactor has no more.
      MOST = 16
      # Bytes of all paths of a server, each with its pool's number and a zero, and of a last empty one.
      ROOM = 4000

      PATHS = Types::Texts.new("a list of paths such as [\"/reports\"]", least: 1)
      # Each keyword, and the setting whose value it is in this pool.
      KEYWORDS = { workers: :workers, threads: :threads, timeout: :timeout, grace: :timeout_grace,
                   streaming: :timeout_streaming, refork: :refork, memory: :memory_worker, canary: :rollout_canary,
                   drain: :drain, max_queue: :max_queue, queue_timeout: :queue_timeout }.freeze
      TYPES = KEYWORDS.transform_values { |name| Settings[name].type }
                      .merge(workers: Types::Whole.new(1..1024), refork: NodeLine::Refork.new).freeze

      attr_reader :source, :name, :paths

      # @param name [Object] as written: a Symbol @param said [Hash{Symbol => Object}] with paths:
      def initialize(name, said, source)
        @source = source
        @name = name.to_s
        refuse("needs a name in small letters such as :reports") unless @name.match?(NodeLine::NAME)
        refuse("has a name that Pando uses itself: give it another one") if [WEB, *NodeLine::RESERVED].include?(@name)
        @paths = read_paths(said)
        @said = said.except(:paths).to_h { |key, value| [key, cast(key, value)] }
      end

      # @param others [Array<PoolLine>] @param nodes [Array<NodeLine>] a kind of node has a pool of its name, too
      def check_beside(others, nodes)
        nodes.each { |node| refuse_same("name", "a node", node) if node.name == name }
        others.each do |other|
          same = other.name == name ? "name" : shared_path(other)
          refuse_same(same, "another pool", other) if same
        end
        refuse("is one too many: the limit is #{MOST - 1}. Give one of them more paths") if others.size == MOST - 1
        excess = [*others, self].sum(&:bytes) - ROOM
        refuse("has too many paths: all pools together have #{excess} bytes too many") if excess.positive?
      end

      # @return [Integer] that its paths take in the reactor
      def bytes = paths.sum { |path| path.bytesize + 2 }

      # @param config [Config] its settings apply to keywords that the line leaves out
      def pool(config)
        refuse("needs the reactor: remove `reactor false`") unless config.reactor
        refuse("has workers for some paths, and no workers serve the others: workers is 0") if config.workers.zero?
        own = apply(config)
        wrong = Threads.obstacle(own)
        refuse("threads #{wrong}") if wrong
        wrong = HardLimit.obstacle(own)
        refuse(wrong) if wrong
        PathPool.new(name: name, paths: paths, config: own, source: source).freeze
      end

      # @return [Config] with the pool's own settings, which are not checked
      def apply(config) = config.with(workers: 1, **@said.transform_keys(KEYWORDS))

      def to_s
        said = { workers: 1, **@said }.map { |key, value| "#{key}: #{TYPES.fetch(key).write(value)}" }
        "pool #{name.to_sym.inspect}, paths: #{paths.inspect}, #{said.join(", ")}"
      end

      # @return [Boolean] whether the value is not that of the setting
      def says?(key) = @said.key?(key)

      # The line, for a process that must not run the file.
      def to_h
        said = @said.to_h { |key, value| [:"said_#{key}", TYPES.fetch(key).text(value)] }
        { name: name, paths: PATHS.text(paths), source: source, **said }
      end

      # @param said [Hash{String => String}] the result of #to_h
      def self.from(said)
        keywords = KEYWORDS.keys.to_h { |key| [key, said["said_#{key}"]] }.compact
        new(said["name"], { paths: said["paths"], **keywords }, said["source"])
      end

      private

      def read_paths(said)
        known = [:paths, *KEYWORDS.keys]
        strange = said.keys.find { |key| !known.include?(key) }
        refuse("has no option #{strange}:.#{Suggestion.for(strange, known)}") if strange
        paths = PATHS.cast(said.fetch(:paths) { refuse("needs paths:, such as paths: [\"/#{name}\"]") })
        wrong = paths.find { |path| !path.match?(%r{\A/[!-~&&[^?#*]]*\z}) }
        refuse("paths: #{wrong.inspect} is not a path: write it from the first slash on, without ?, # and *") if wrong
        refuse("paths: \"/\" is every path: the workers of the server serve it") if paths.include?("/")
        paths.freeze
      rescue Type::Invalid => e
        refuse("paths: #{e.message}")
      end

      def cast(key, written)
        TYPES.fetch(key).cast(written)
      rescue Type::Invalid => e
        refuse("#{key}: #{e.message}")
      end

      def shared_path(other) = (paths & other.paths).first&.then { |path| "path #{path}" }

      def refuse_same(what, kind, other)
        refuse("has the #{what} of #{kind} (#{other.source}): change one of them")
      end

      def refuse(message) = raise(ConfigError, "#{source}: pool :#{name} #{message}")
    end
  end
end
