# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/cable_client"
require "support/rails_app"
require "uri"

# Turbo Streams in a fresh `rails new` app with its own cable.yml (Solid Cable): the WebSockets are in a pool of their
# own, and what the workers of the pool `web` broadcast reaches them across a refork of these and a reload.
class TurboStreamsTest < Minitest::Test
  CLIENTS = 3
  # Rails assumes in production that a proxy speaks TLS.
  TLS = { "X-Forwarded-Proto" => "https" }.freeze

  CONFIG = <<~RUBY
    workers 2
    threads 5
    refork :manual
    rollout canary: false
    control "tmp/control.sock"
    pool :live, paths: ["/cable"], workers: 1, threads: 64, refork: false
  RUBY

  FILES = {
    "db/migrate/20250101000000_create_notes.rb" => <<~RUBY,
      class CreateNotes < ActiveRecord::Migration[8.0]
        def change = create_table(:notes) { |table| table.string(:text) }
      end
    RUBY
    "app/models/note.rb" => <<~RUBY,
      class Note < ApplicationRecord
        after_create_commit { broadcast_append_to "notes" }
      end
    RUBY
    "app/controllers/notes_controller.rb" => <<~RUBY,
      class NotesController < ActionController::Base
        skip_forgery_protection

        def index = @notes = Note.all
        def create = render(json: { id: Note.create!(text: params[:text]).id, worker: Process.pid })
      end
    RUBY
    "app/views/notes/index.html.erb" => %(<%= turbo_stream_from "notes" %><ul id="notes"><%= render @notes %></ul>),
    "app/views/notes/_note.html.erb" => %(<li id="<%= dom_id note %>"><%= note.text %></li>),
    "config/routes.rb" => <<~RUBY
      Rails.application.routes.draw do
        get "up" => "rails/health#show"
        resources :notes, only: %i[index create]
      end
    RUBY
  }.freeze

  def setup
    skip "Solid Cable comes with Rails 8" if Support::RailsApp::VERSION < "8"

    @clients = []
    @app = Support::RailsApp.create
    @app.prepare_database("production")
    FILES.each { |name, text| @app.write(name, text) }
    @server = @app.serve(environment: "production", config: CONFIG)
    @server.wait_past("server.ready")
  end

  def teardown
    @clients&.each(&:close)
    @server&.kill
    @app&.remove
  end

  def test_broadcasts_reach_the_pages_across_a_refork_and_a_reload
    CLIENTS.times { open_page }
    assert_reaches_every_page
    @server.wait_for("refork.finished", pool: "web") { assert(refork_web) }
    assert_reaches_every_page
    assert_equal([1], @clients.map { |client| client.sessions.size }.uniq, "a refork of web ended a WebSocket")
    @server.wait_for("reload.finished") { @server.signal("HUP") }
    @server.wait_for_leavers
    wait_until { @clients.all?(&:subscribed?) }
    assert_reaches_every_page

    assert_empty(@clients.flat_map(&:faults))
    assert_empty(@server.complaints)
  end

  private

  # As a browser with Turbo does: it subscribes to the stream that the page names.
  def open_page
    page = @server.get("/notes", TLS)
    assert_equal(200, page.status, page.body)
    tag = page.body[/<turbo-cable-stream-source [^>]+>/]
    channel, stream = %w[channel signed-stream-name].map { |name| tag[/ #{name}="([^"&]+)"/, 1] }
    @clients << Support::CableClient.new(
      @server.method(:connect), worker: "any", headers: { **TLS, "Origin" => "https://localhost" },
                                channel: JSON.generate(channel: channel, signed_stream_name: stream)
    )
    wait_until(message: -> { "a subscription: #{@clients.last.session}" }) { @clients.last.subscribed? }
  end

  def assert_reaches_every_page
    answer = @server.request("POST", "/notes", { **TLS, "Content-Type" => "application/x-www-form-urlencoded" },
                             URI.encode_www_form(text: "héllo <b>"))
    assert_equal(200, answer.status, answer.body)
    id, worker = JSON.parse(answer.body).values_at("id", "worker")
    assert_includes(@server.workers.map(&:pid), worker)
    item = %(<li id="note_#{id}">héllo &lt;b&gt;</li>)
    stream = %(<turbo-stream action="append" target="notes"><template>#{item}</template></turbo-stream>)
    wait_until(message: -> { "#{stream} at each page: #{@clients.map(&:session)}" }) do
      @clients.all? { |client| client.session.texts.include?(stream) }
    end
  end

  def refork_web
    command = Support::Checkout.pando("refork", "web", "-c", "config/pando.rb")
    Open3.capture2e(*command, chdir: @app.folder).last.success?
  end
end
