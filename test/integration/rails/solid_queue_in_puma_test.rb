# frozen_string_literal: true

require "test_helper"
require "support/rails_app"
require "uri"

# Promise: SOLID_QUEUE_IN_PUMA, which Rails' own deployment sets, runs the jobs of a stock app beside its workers: those
# of config/queue.yml at once, those of config/recurring.yml when they are due.
class SolidQueueInPumaTest < Minitest::Test
  TROUBLE = /\.(?:lost|killed|failed|discarded|refused|stuck)\z/
  QUEUE_FILE = <<~YAML
    default: &default
      dispatchers:
        - polling_interval: 0.1
          batch_size: 100
      workers:
        - queues: "mails"
          threads: 1
          polling_interval: 0.1
        - queues: [ default, solid_queue_recurring ]
          threads: 2
          processes: <%= ENV.fetch("JOB_CONCURRENCY", 1) %>
          polling_interval: 0.1
    production:
      <<: *default
  YAML

  def setup
    skip "Solid Queue comes with Rails 8" if Support::RailsApp::VERSION < "8"

    @app = Support::RailsApp.create
    @app.write("config/queue.yml", QUEUE_FILE)
    @app.write("config/recurring.yml", "production:\n  tick:\n    class: TickJob\n    schedule: every second\n")
    @app.write("config/routes.rb", "Rails.application.routes.draw { get \"later/:word\", to: \"notes#later\" }")
    @app.write("app/controllers/notes_controller.rb", <<~RUBY)
      class NotesController < ActionController::Base
        def later
          NoteJob.set(queue: params[:queue] || :default, wait: params[:wait]&.to_f&.seconds).perform_later(params[:word])
          head :accepted
        end
      end
    RUBY
    job("NoteJob", "word", "File.write(Rails.root.join(\"tmp/\#{word}.done\"), \"\#{Process.pid} \#{queue_name}\")")
    job("TickJob", "", 'File.write(Rails.root.join("tmp/ticks"), "tick\n", mode: "a")')
  end

  def teardown
    @server&.kill
    @app&.remove
  end

  def test_jobs_run_beside_the_workers
    serve({ "SOLID_QUEUE_IN_PUMA" => "true", "JOB_CONCURRENCY" => "2" })
    followed = @server.events("setting.followed")

    assert_equal(["SOLID_QUEUE_IN_PUMA"], followed.map { |event| event["name"] })
    assert_few_connections(@server.wait_past("connections.few"))
    done = [later("plain"), later("mail", queue: "mails"), later("delayed", wait: 0.5)].map { |word| wait_for(word) }
    nodes = @server.nodes("solid_queue").map { |node| node.pid.to_s }
    assert_equal 1, nodes.size
    assert_equal [nodes * 3, %w[default mails default]], [done.map(&:first), done.map(&:last)]
    assert_operator wait_for_ticks(2), :>=, 2

    @server.wait_for("refork.finished", pool: "solid_queue") { @server.signal("USR2") }
    later("after")
    refute_includes nodes, wait_for("after").first
    assert_operator wait_for_ticks(count_ticks + 2), :>=, 2
    assert_empty(@server.events.select { |event| TROUBLE.match?(event["event"]) })
    assert_predicate @server.stop, :success?, @server.output
  end

  # Its processes have no alive?.
  def test_the_thread_that_claims_jobs_is_replaced_in_solid_queue_1_2
    use("1.2.1")
    job("NoteJob", "word", "(Thread.list.each { |one| one.kill if /\\Aworker-\\h{20}/.match?(one.name) } if " \
                           "word == \"deadly\"; File.write(Rails.root.join(\"tmp/\#{word}.done\"), Process.pid))")
    serve({ "SOLID_QUEUE_IN_PUMA" => "1" })
    nodes = [later("deadly"), later("after"), later("mail", queue: "mails")].flat_map { |word| wait_for(word) }

    assert_equal 1, nodes.uniq.size
    assert_empty(@server.events.select { |event| TROUBLE.match?(event["event"]) })
    assert_predicate @server.stop, :success?, @server.output
  end

  # There is one node, so that all jobs run beside each other.
  def test_a_job_that_kills_its_node_fails_and_the_one_beside_it_is_done
    deadly_job('Rails.root.join("tmp/begun").write("") && (sleep(0.05) until Rails.root.join("tmp/go").exist?).nil?')
    serve({ "SOLID_QUEUE_IN_PUMA" => "true" })
    @server.wait_past("generation.current", pool: "solid_queue")
    healthy = later("healthy")
    wait_until(timeout: 60) { File.exist?(File.join(@app.folder, "tmp/begun")) }
    later("deadly")
    failed = @server.wait_past("job.killed", reason: "it has failed", patience: 120)
    @app.write("tmp/go", "")
    wait_for(healthy)

    assert_equal "NoteJob", failed["name"]
    deaths = @server.events("job.killed").group_by { |event| event["id"] }
                    .transform_values { |events| events.map { |event| event["deaths"] } }
    assert_equal [1, 2, 3], deaths.delete(failed["id"])
    assert_equal [[1, 2]], deaths.values
  end

  # The first nodes die of it before they are ready; of twice as many if they have claimed the other one each time.
  def test_a_job_that_kills_its_node_and_waits_for_the_start_costs_nobody_else
    deadly_job
    @app.prepare_database("production")
    @app.rails("runner", "%w[deadly healthy].each { |word| NoteJob.perform_later(word) }", environment: "production")
    serve({ "SOLID_QUEUE_IN_PUMA" => "true" })

    assert_includes 3..6, @server.wait_past("job.killed", reason: "it has failed", patience: 120)["deaths"]
    wait_for("healthy")
    assert_equal "default", wait_for(later("after")).last
  end

  # It leaves the variable to Pando.
  def test_the_translated_file_runs_them_as_well
    @app.run(Gem.ruby, "-I", Support::Checkout.path("lib"), Support::Checkout.path("exe/pando"), "init")
    serve({ "SOLID_QUEUE_IN_PUMA" => "1" }, config: @app.read("config/pando.rb").gsub(/^listen/, "# listen"))
    assert_equal(["SOLID_QUEUE_IN_PUMA"], @server.events("setting.followed").map { |event| event["name"] })

    later("translated")
    assert_equal "default", wait_for("translated").last
    assert_equal 1, @server.nodes("solid_queue").size
  end

  def test_without_the_variable_there_is_no_node
    serve({}, pools: {})

    assert_empty @server.nodes("solid_queue")
    assert_empty @server.events("setting.followed")
  end

  private

  # Takes the recurring job away: if a node claims one together with the deadly job, nobody knows which of them killed
  # the node, and the deadly job fails only after more deaths.
  # @param healthy [String] what every other job does first; it is true
  def deadly_job(healthy = "sleep(2)")
    @app.write("config/recurring.yml", "production: {}\n")
    job("NoteJob", "word", "(word == \"deadly\" ? Process.kill(:KILL, Process.pid) : #{healthy}) && " \
                           "File.write(Rails.root.join(\"tmp/\#{word}.done\"), \"\#{Process.pid} \#{queue_name}\")")
  end

  # @param version [String] of Solid Queue
  def use(version)
    @app.write("Gemfile", @app.read("Gemfile").sub(/^gem "solid_queue".*$/, %(gem "solid_queue", "#{version}")))
    Support::RailsApp.install_gems(@app.folder)
  end

  def job(name, parameters, line)
    file = name.gsub(/(?<=[a-z])[A-Z]/) { |letter| "_#{letter}" }.downcase
    @app.write("app/jobs/#{file}.rb", "class #{name} < ApplicationJob\n  def perform(#{parameters}) = #{line}\nend\n")
  end

  # @param pools [Hash] empty where there is only one
  def serve(env, config: "", pools: { pool: "web" })
    @server = @app.serve(environment: "production", config: "workers 2\nrollout canary: false\n#{config}", env: env,
                         ready: false)
    @server.wait_past("generation.current", patience: 120, **pools)
  end

  # Three workers have five threads, and a pool has five connections.
  def assert_few_connections(few)
    assert_equal(["queue", 5, 5], few.values_at("name", "connections", "threads"))
    assert_includes(few["advice"], "to 17 in config/database.yml")
  end

  # @return [String] the word
  def later(word, **query)
    answer = @server.get("/later/#{word}?#{URI.encode_www_form(query)}", "X-Forwarded-Proto" => "https")
    assert_equal 202, answer.status, answer.body
    word
  end

  # @return [Array(String, String)] the process that did it, and the queue
  def wait_for(word)
    path = File.join(@app.folder, "tmp", "#{word}.done")
    wait_until(timeout: 60, message: lambda {
      "job #{word}\n#{@server.output[-3000..]}"
    }) { File.exist?(path) && File.size?(path) }
    File.read(path).split
  end

  def wait_for_ticks(count)
    wait_until(timeout: 60, message: -> { "a recurring job\n#{@server.output[-3000..]}" }) do
      found = count_ticks
      found if found >= count
    end
  end

  def count_ticks
    path = File.join(@app.folder, "tmp/ticks")
    File.exist?(path) ? File.readlines(path).size : 0
  end
end
