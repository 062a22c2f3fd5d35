# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/rails_app"
require "support/terminal_session"

# `bin/rails server` of a fresh app, at a terminal, in development.
class RailsDevelopmentTest < Minitest::Test
  CONTROLLER = <<~RUBY
    class PagesController < ActionController::Base
      def show
        value = 41
        binding.irb if params[:stop]
        raise "broken page" if params[:fail]
        render plain: "first \#{value}"
      end
    end
  RUBY
  CONTROL_C = "\x03"

  def setup
    @app = Support::RailsApp.create
    @app.write("config/routes.rb", "Rails.application.routes.draw { get \"/page\" => \"pages#show\" }\n")
    @controller = @app.write("app/controllers/pages_controller.rb", CONTROLLER)
    @app.prepare_database
    @port = free_port
    env = @app.variables("development").merge("RAILS_ENV" => nil, "PORT" => @port.to_s)
    @session = Support::TerminalSession.new(env, Gem.ruby, "bin/rails", "server", folder: @app.folder)
    @session.wait_for(/server\.ready/)
  end

  def teardown
    @session&.close
    @app&.remove
  end

  def test_it_shows_requests_and_exceptions_and_reloads_code
    assert_match(%r{=> Booting Pando\s.*=> Rails .* application starting in development http://localhost:#{@port}}m,
                 @session.text)
    assert_path_exists File.join(@app.folder, "config/puma.rb")
    assert_equal %w[server.ready], @session.text.scan(/ pando (?:WARN )?(\w+\.\w+)/).flatten
    @session.wait_for(%r{Started GET "/page" for 127\.0\.0\.1.*Completed 200 OK}m) do
      assert_equal "first 41", get("/page").body
    end
    File.write(@controller, CONTROLLER.sub("first", "second"))

    assert_equal "second 41", get("/page").body
    @session.wait_for(/RuntimeError \(broken page\)/) { assert_includes get("/page?fail=1").body, "broken page" }

    assert_path_exists File.join(@app.folder, "tmp/pids/server.pid")
    assert_match(/exit 1.*pando: cannot listen on 127\.0\.0\.1:#{@port}: another process listens there/m, detached)
    control_c_ends_it_at_once
  end

  def test_a_prompt_has_the_terminal
    request = Thread.new { get("/page?stop=1").body }
    @session.wait_for(/irb\(/)
    @session.wait_for(/=> 99/) { @session.line("value = 99; value") }
    @session.wait_for(/irb\(.*\n?/) { @session.type(CONTROL_C) }
    @session.wait_for(/=> 101/) { @session.line("value + 2") }
    @session.wait_for(/Completed 200 OK/) { @session.line("exit") }

    assert_equal "first 99", request.value
    control_c_ends_it_at_once
  end

  private

  # What a second server says that is to leave the terminal.
  def detached
    assert_raises(Support::RailsApp::Failed) do
      @app.rails("server", "-d", "-p", @port.to_s, "-P", "tmp/pids/other.pid")
    end.message
  end

  def get(path) = Net::HTTP.get_response(URI("http://127.0.0.1:#{@port}#{path}"))

  # With a connection open, as a browser has it.
  def control_c_ends_it_at_once
    Net::HTTP.start("127.0.0.1", @port) do |browser|
      browser.get("/page")
      IO.select(nil, nil, nil, Pando::Cluster::Signals::ONE * 1.5) # else it repeats the last one
      began = Support::FairClock.now
      @session.type(CONTROL_C)

      assert_predicate @session.wait_for_exit, :success?
      assert_operator Support::FairClock.now - began, :<, 5
    end
    refute_path_exists File.join(@app.folder, "tmp/pids/server.pid")
  end
end
