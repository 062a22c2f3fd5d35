# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "support/lab/traffic"
require_relative "../../../apps/redmine/traffic"

module Bench
  module Lab
    module Apps
      # Redmine: the newest version in Debian's archive, or a copy of a checkout. Its code, its assets and its database
      # are made once and kept in the user's cache folder. Each run has a copy of the database.
      class Redmine
        SOURCES = File.join(FOLDER, "redmine")
        DATABASE = "production.sqlite3"
        SESSIONS = "sessions.json"
        DATA = [DATABASE, SESSIONS].freeze
        WITHOUT = %w[development test].freeze
        CODE = %w[install database.yml additional_environment.rb].freeze # the files that determine the code
        GEMFILE = <<~RUBY
          eval_gemfile %<redmine>p
          gem "pitchfork", "~> 0.18", require: false
          gem "puma", ">= 6.6", require: false
        RUBY

        # @param checkout [String, nil] path of a Redmine; nil: Debian's
        def initialize(checkout = nil)
          @checkout = checkout && File.expand_path(checkout)
        end

        def bundle
          @bundle ||= begin
            Apps.locked(home) { install unless File.directory?(code) }
            Bundle.new(File.basename(home), File.join(home, "Gemfile"), without: WITHOUT).prepare
          end
        end

        def prepare(bundle)
          Apps.locked(home) { fill(bundle) unless File.directory?(data) }
        end

        # @return [Hash{String => String}] for the server
        def environment(folder)
          FileUtils.cp(File.join(data, DATABASE), folder)
          surroundings(folder).merge("LAB_APP" => File.join(code, "config.ru"))
        end

        def traffic(seed)
          sessions = JSON.parse(File.read(File.join(data, SESSIONS)))
          Traffic.new(RedmineApp::Traffic.targets(sessions).map(&:to_a),
                      writes: RedmineApp::Traffic.writes.map(&:to_a), share: RedmineApp::Traffic::WRITES, seed: seed)
        end

        private

        def home = @home ||= File.join(Apps.cache, "redmine-#{digest(CODE, [@checkout.to_s, version])}")
        def code = File.join(home, "code")
        def data = @data ||= File.join(home, "data-#{digest(Dir.children(SOURCES).sort - CODE)}")

        def version
          @checkout ? File.read(File.join(@checkout, "lib/redmine/version.rb")) : ""
        rescue Errno::ENOENT
          raise Failed, "#{@checkout} is no checkout of Redmine"
        end

        def digest(names, more = [])
          texts = names.map { |name| File.read(File.join(SOURCES, name)) }
          Digest::SHA256.hexdigest([*texts, *more].join("\0"))[0, 16]
        end

        def install
          output = IO.popen([File.join(SOURCES, "install"), code, *@checkout], err: %i[child out], &:read)
          raise Failed, "Redmine: #{output}" unless Process.last_status.success?

          File.write(File.join(home, "Gemfile"), format(GEMFILE, redmine: File.join(code, "Gemfile")))
        end

        def surroundings(folder)
          { "LAB_FOLDER" => folder, "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "0" * 128 }
        end

        def fill(bundle)
          warn "filling Redmine's database ..."
          fresh = "#{data}.new"
          FileUtils.rm_rf(fresh)
          FileUtils.mkdir_p(fresh)
          environment = bundle.environment.merge(surroundings(fresh))
          FileUtils.rm_f(File.join(code, "db/schema.rb")) # a database made from this schema would have no first user
          run(environment.merge("LAB_COMPILE_ASSETS" => "1"), "bin/rails", "db:migrate")
          run(environment, File.join(SOURCES, "seed.rb"), code)
          FileUtils.rm_rf((Dir.children(fresh) - DATA).map { |name| File.join(fresh, name) })
          File.rename(fresh, data)
        end

        def run(environment, *command)
          output = IO.popen([environment, Gem.ruby, *command], err: %i[child out], chdir: code, &:read)
          return if Process.last_status.success?

          raise Failed, "Redmine's database: #{output.lines.grep_v(/\A\s*from /).last(20).join}"
        end
      end

      add("redmine") { |options| Redmine.new(options[:redmine]) }
    end
  end
end
