# frozen_string_literal: true

# Fills Redmine's database in LAB_FOLDER, the same each time: 42 users, 6 projects with 500 issues and their journals,
# wiki pages, news, boards, time entries. Writes the cookies of users that are logged in to sessions.json.
#
#   LAB_FOLDER=... RAILS_ENV=production ruby seed.rb CODE

code = ARGV.fetch(0)
require File.join(code, "config/environment")
require "json"
require_relative "content"

Redmine::DefaultData::Loader.load("en")
Bench::RedmineApp::Content.new.write

ApplicationController.allow_forgery_protection = false
sessions = Bench::RedmineApp::Traffic::LOGINS.map do |login|
  answer = Rack::MockRequest.new(Rails.application)
                            .post("/login", "HTTP_HOST" => "127.0.0.1",
                                            params: { username: login, password: Bench::RedmineApp::Traffic::PASSWORD })
  cookie = Array(answer.headers["set-cookie"]).join("\n")[/^_redmine_session=[^;]+/]
  cookie && answer.status == 302 ? cookie : abort("#{login} cannot log in: #{answer.status}\n#{answer.body[0, 500]}")
end
File.write(File.join(ENV.fetch("LAB_FOLDER"), "sessions.json"), JSON.generate(sessions))
ActiveRecord::Base.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
