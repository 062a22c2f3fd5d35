# frozen_string_literal: true

require "digest"
require "fileutils"
require "support/lab/traffic"
require_relative "../../apps/rails/generator"
require_relative "../../apps/rails/traffic"

module Bench
  module Lab
    # The apps: what serves, and what is asked of it.
    module Apps
      FOLDER = File.expand_path("../../apps", __dir__)

      # A rackup file of bench/apps.
      class Plain
        def initialize(name, targets, environment = {})
          @name = name
          @targets = targets
          @environment = environment
        end

        # @return [Hash{String => String}] for the server
        def environment(_folder) = @environment.merge("LAB_APP" => File.join(FOLDER, "#{@name}.ru"))

        # @param seed [Integer]
        def traffic(seed) = Traffic.new(@targets, seed: seed)

        # Once, before any server is started.
        def prepare(_bundle); end
      end

      # The generated Rails app. Its code and its database are made once for each state of the generator and kept in the
      # user's cache folder; each run has a copy of the database.
      class Rails
        class Failed < StandardError; end

        DATABASE = "production.sqlite3"

        def environment(folder)
          FileUtils.cp(File.join(data, DATABASE), folder)
          surroundings(folder).merge("LAB_APP" => File.join(code, "config.ru"))
        end

        def traffic(seed)
          Traffic.new(RailsApp::Traffic.targets, writes: RailsApp::Traffic.writes, share: RailsApp::Traffic::WRITES,
                                                 seed: seed)
        end

        def prepare(bundle)
          FileUtils.mkdir_p(home)
          File.open(File.join(home, "lock"), File::CREAT | File::RDWR) do |lock|
            lock.flock(File::LOCK_EX) # of several that generate it at a time, the later ones wait
            generate(bundle) unless File.exist?(File.join(data, DATABASE))
          end
        end

        private

        def home
          @home ||= File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "pando", "lab", digest)
        end

        def code = File.join(home, "app")
        def data = File.join(home, "data")

        def digest
          Digest::SHA256.hexdigest(RailsApp::Generator.sources.map { |path| File.read(path) }.join("\0"))[0, 16]
        end

        def generate(bundle)
          FileUtils.rm_rf([code, "#{data}.new"])
          FileUtils.mkdir_p("#{data}.new")
          RailsApp::Generator.new(code).write
          fill(bundle)
          File.rename("#{data}.new", data)
        end

        def surroundings(folder) = { "LAB_FOLDER" => folder, "RAILS_ENV" => "production" }

        def fill(bundle)
          output = IO.popen([bundle.environment.merge(surroundings("#{data}.new")), Gem.ruby,
                             File.join(code, "db/prepare.rb")], err: %i[child out], &:read)
          raise Failed, "the Rails app's database: #{output}" unless Process.last_status.success?
        end
      end

      # @param name [String] one of NAMES
      # @param methods [Integer] of the constant-caches app
      def self.build(name, methods: 100_000)
        case name
        when "rails" then Rails.new
        when "constants" then Plain.new("constants", [%w[GET /]], "BENCH_METHODS" => methods.to_s)
        else Plain.new("roda", Small.targets)
        end
      end

      NAMES = %w[rails constants roda].freeze

      # What bench/apps/roda.ru answers.
      module Small
        NAMES = %w[ant bee cat dog eel fox gnu hen ibis jay kea lynx mole newt owl pig quail ram seal toad].freeze

        def self.targets = NAMES.map { |name| ["GET", "/#{name}/%d"] }
      end
    end
  end
end
