# frozen_string_literal: true

require "support/bundle"
require "support/packages"
require "support/servers/agoo"
require "support/servers/falcon"
require "support/servers/iodine"
require "support/servers/itsi"
require "support/servers/nginx"
require "support/servers/pando"
require "support/servers/pitchfork"
require "support/servers/puma"

module Bench
  # All servers by their names on a command line. A server's gem is installed on first use. If that fails, the server is
  # left out, with the reason.
  module Servers
    ALL = {
      "pando" => Pando, "pando-direct" => PandoDirect, "iodine" => Iodine, "agoo" => Agoo, "itsi" => Itsi,
      "falcon" => Falcon, "puma" => Puma, "puma-threads" => PumaThreads, "pitchfork" => Pitchfork,
      "nginx" => Nginx, "nginx-deferred" => NginxDeferred
    }.freeze

    GEMFILE = File.expand_path("../Gemfile", __dir__)
    GROUPS = %w[agoo falcon iodine itsi pitchfork puma].freeze

    # @param name [String] one of ALL
    # @return [Bundle] with that server's gem and Rack
    # @raise [Bundle::Failed] it cannot be installed
    def self.bundle(name)
      group = name[/\A[a-z]+/]
      without = GROUPS - [group]
      (@bundles ||= {})[group] ||= Bundle.new("bench-#{GROUPS.include?(group) ? group : "rack"}", GEMFILE,
                                              without: without).prepare
    end

    # @param name [String] one of ALL
    # @param environment [Hash] in addition to that of the bundle
    # @param refork [String] Pando's setting
    # @return [Server] not started yet
    def self.build(name, environment: {}, refork: "off", **options)
      bundle = bundle(name)
      kind = ALL.fetch(name)
      options[:bundle] = bundle if kind < Peer
      options[:refork] = refork if kind <= Pando
      kind.new(environment: bundle.environment.merge(environment), **options)
    end

    # @param name [String] one of ALL
    # @param workers [Integer]
    # @return [String] its name in a report
    def self.label(name, workers:) = build(name, app: "", folder: "", workers: workers).label

    # @param names [Array<String>] of ALL
    # @return [Array(Array<String>, Hash{String => String})] those that can run, and why the others cannot
    def self.installed(names)
      reasons = names.to_h { |name| [name, reason_against(name)] }.compact
      [names - reasons.keys, reasons]
    end

    def self.reason_against(name)
      bundle(name)
      Packages.executable("nginx", "nginx-light") if name.start_with?("nginx")
      nil
    rescue Bundle::Failed, Packages::Missing => e
      e.message.lines.reject { |line| line.strip.empty? }.last.strip
    end
    private_class_method :reason_against
  end
end
